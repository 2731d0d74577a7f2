import { Empty } from "../parts/notices";
import { pageUrl } from "../parts/url";

export default function NotFound() {
  return (
    <div class="card">
      <Empty icon="search" title="There is no such page">
        The address may be mistyped. <a href={pageUrl("")}>Go to the overview</a>.
      </Empty>
    </div>
  );
}
