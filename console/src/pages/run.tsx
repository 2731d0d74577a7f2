// The page of one run, of a batch or of a pipeline.
import { address } from "../api/client";
import { useAddress } from "../api/query";
import { Shown } from "../parts/notices";
import { type AnyRun, isBatch } from "../parts/runs";
import { BatchRunPage } from "../runs/batch_run";
import { PipelineRunPage } from "../runs/pipeline_run";
import "../styles/runs.css";

export default function Run({ id }: { id: string }) {
  const run = useAddress<AnyRun>(address("/runs/{run_id}", { run_id: id }));
  return (
    <Shown reading={run}>
      {(found) => (isBatch(found) ? <BatchRunPage run={found} key={found.id} /> : <PipelineRunPage run={found} key={found.id} />)}
    </Shown>
  );
}
