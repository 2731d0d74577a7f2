import { useState } from "preact/hooks";
import { base } from "../api/client";
import { logIn } from "../api/session";
import { Icon } from "../parts/icon";
import { Command, Text } from "../parts/text";

/** Asks for a token. */
export function LogIn() {
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy) return;
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim();
    setBusy(true);
    setFailure("");
    try {
      await logIn(token);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <main class="log-in">
      <form class="card" onSubmit={submit}>
        <img src={`${base}icon.svg`} alt="" />
        <h1>Log in to Detent</h1>
        <p class="soft">This server asks for a token. An administrator makes one with this command:</p>
        <Command text="detent tokens create NAME --role operator" />
        <div class="field">
          <label for="token">Token</label>
          <input id="token" name="token" type="password" class="input" required autocomplete="current-password" autofocus />
        </div>
        {failure && (
          <p class="form-problem" role="alert">
            <Icon name="warning" /> <Text value={failure} />
          </p>
        )}
        <button type="submit" class="button primary" aria-disabled={isBusy}>
          {isBusy ? "Checking…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
