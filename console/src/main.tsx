import { render } from "preact";
import { LocationProvider } from "preact-iso";
import { loadSession } from "./api/session";
import { startLive } from "./live/live";
import { Shell } from "./shell/shell";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/table.css";
import "./styles/filter.css";

startLive();
void loadSession();
render(
  <LocationProvider>
    <Shell />
  </LocationProvider>,
  document.getElementById("console") as HTMLElement,
);
