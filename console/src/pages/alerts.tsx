// The page of alerts: what fires, what has fired, and the policies.
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { duration, exactly, many } from "../parts/format";
import { Icon } from "../parts/icon";
import { useList } from "../parts/list";
import { ListTable } from "../parts/list_table";
import { Empty, Shown } from "../parts/notices";
import { PageHead } from "../parts/page";
import { State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Clip, Text } from "../parts/text";
import { Time } from "../parts/time";
import { toast } from "../parts/toasts";
import { useQuery } from "../parts/url";
import "../styles/alerts.css";

type Alert = Schemas["Alert"];
type Policy = Schemas["Policy"];

const idOf = (alert: Alert) => (alert.scope ? `${alert.policy}/${alert.scope}` : alert.policy);

function acknowledgeAction(alert: Alert): Action {
  return {
    label: "Acknowledge",
    icon: "eye",
    allowed:
      alert.state !== "firing"
        ? "This alert is resolved."
        : alert.acknowledged_at
          ? `${alert.acknowledged_by ?? "Someone"} has acknowledged it already.`
          : true,
    title: `Acknowledge ${idOf(alert)}?`,
    text: "It stays on this page, and no further reminders are sent.",
    run: async (reason) => {
      await post("/alerts/{alert_id}/acknowledge", { parts: { alert_id: idOf(alert) }, body: { reason } });
      return { message: `${idOf(alert)} is acknowledged.` };
    },
  };
}

function resolveAction(alert: Alert): Action {
  return {
    label: "Resolve",
    icon: "check",
    allowed: alert.state === "firing" ? true : "This alert is resolved already.",
    title: `Resolve ${idOf(alert)}?`,
    text: "It fires again if its cause comes back.",
    run: async (reason) => {
      await post("/alerts/{alert_id}/resolve", { parts: { alert_id: idOf(alert) }, body: { reason } });
      return { message: `${idOf(alert)} is resolved.` };
    },
  };
}

const COLUMNS: Column<Alert>[] = [
  {
    head: "State",
    width: "128px",
    place: "side",
    cell: (alert) => <State state={alert.state === "firing" && alert.acknowledged_at ? "acknowledged" : alert.state} />,
  },
  { head: "Severity", width: "112px", cell: (alert) => <State state={alert.severity} /> },
  {
    head: "Alert",
    width: "17%",
    place: "lead",
    cell: (alert) => (
      <span data-row-link tabIndex={-1} class="alert-name">
        <Clip value={alert.policy} />
        {alert.scope && <Clip value={alert.scope} />}
      </span>
    ),
  },
  {
    head: "Message",
    cell: (alert) => (
      <span class="wrap">
        <Text value={alert.message} />
        {alert.acknowledged_at && (
          <span class="small soft block">
            seen by <Text value={alert.acknowledged_by} />, <Time at={alert.acknowledged_at} />
            {alert.acknowledged_reason && (
              <>
                : <Text value={alert.acknowledged_reason} />
              </>
            )}
          </span>
        )}
      </span>
    ),
  },
  {
    head: "Since",
    width: "108px",
    right: true,
    cell: (alert) => (
      <span title={`raised ${exactly(alert.raised)} times`}>
        <Time at={alert.resolved_at ?? alert.since} />
      </span>
    ),
  },
  {
    head: "Actions",
    width: "226px",
    right: true,
    actions: true,
    cell: (alert) => (
      <span class="row end">
        <ActionButton compact action={acknowledgeAction(alert)} />
        <ActionButton compact action={resolveAction(alert)} />
      </span>
    ),
  },
];

/** Says when a policy fires. */
function ruleOf(policy: Policy): string {
  const each = policy.each === "whole" ? "" : ` of a ${policy.each}`;
  const over = policy.window_seconds ? ` over ${duration(policy.window_seconds)}` : "";
  const limit = policy.threshold;
  switch (policy.measure) {
    case "success_rate":
      return `the success rate${each}${over} is below ${limit === null ? "" : `${+(limit * 100).toFixed(1)} %`}`;
    case "dead_letters":
      return `there are more than ${limit ?? 0} dead letters${each}`;
    case "oldest_ready":
      return `the oldest ready job${each} waits for more than ${duration(limit ?? 0)}`;
    case "throttled":
      return `more than ${limit ?? 0} attempts${each} are throttled${over}`;
    case "breaker_open":
      return `a breaker${each} is open`;
    case "undelivered":
      return `more than ${limit ?? 0} messages wait to be delivered`;
    default:
      return "a program or the engine raises it";
  }
}

function policyAction(policy: Policy): Action {
  const set = (enabled: boolean, reason?: string) =>
    post("/alerts/policies/{name}/set", { parts: { name: policy.name }, body: { enabled, reason } });
  const [label, done] = policy.enabled ? ["Switch off", "off"] : ["Switch on", "on"];
  return {
    label,
    icon: policy.enabled ? "pause" : "play",
    allowed: true,
    title: `${label.replace("Switch", "Switch the policy")}: ${policy.name}?`,
    text: policy.enabled ? "It raises no alert until it is switched on again." : "It raises alerts again.",
    run: async (reason) => {
      await set(!policy.enabled, reason);
      return { message: `The policy ${policy.name} is ${done}.`, undo: () => set(policy.enabled, "undo") };
    },
  };
}

function thresholdAction(policy: Policy): Action {
  return {
    label: "Change",
    allowed: policy.threshold === null ? "This policy has no threshold." : true,
    title: `Change the policy ${policy.name}`,
    text: `It fires if ${ruleOf(policy)}.`,
    fields: (
      <div class="field">
        <label for="threshold">Threshold</label>
        <input id="threshold" name="threshold" class="input" type="number" step="any" required defaultValue={String(policy.threshold ?? "")} />
      </div>
    ),
    run: async (reason, form) => {
      const before = policy.threshold;
      const set = (threshold: number, why?: string) =>
        post("/alerts/policies/{name}/set", { parts: { name: policy.name }, body: { threshold, reason: why } });
      await set(Number(form.get("threshold")), reason);
      return { message: `The policy ${policy.name} is changed.`, undo: before === null ? undefined : () => set(before, "undo") };
    },
  };
}

const POLICIES: Column<Policy>[] = [
  { head: "Policy", width: "22%", place: "lead", cell: (one) => <Clip value={one.name} /> },
  { head: "State", width: "100px", place: "side", cell: (one) => <State state={one.enabled ? "active" : "paused"} label={one.enabled ? "on" : "off"} /> },
  { head: "Severity", width: "110px", cell: (one) => <State state={one.severity} /> },
  { head: "Fires if", cell: (one) => <span class="wrap">{ruleOf(one)}</span> },
  { head: "Calm for", width: "90px", right: true, cell: (one) => <span class="number">{duration(one.calm_seconds)}</span> },
  {
    head: "Actions",
    width: "200px",
    right: true,
    actions: true,
    cell: (one) => (
      <span class="row end">
        <ActionButton compact action={thresholdAction(one)} />
        <ActionButton compact action={policyAction(one)} />
      </span>
    ),
  },
];

const TEST: Action = {
  label: "Test",
  icon: "alerts",
  allowed: true,
  title: "Send a test message to every sink?",
  text: "The pager also gets a message that resolves it. Nothing is wrong, and the message says so.",
  run: async () => {
    const answers = (await post("/alerts/test", {})) as Record<string, { said: string; fault: string | null }>;
    const sinks = Object.entries(answers);
    if (sinks.length === 0) {
      toast("No sink is in the settings: set DETENT_ALERT_WEBHOOK or another one, and try again.", "plain");
      return;
    }
    for (const [sink, answer] of sinks) {
      toast(answer.fault ? `${sink}: ${answer.said}` : `${sink}: sent.`, answer.fault ? "bad" : "good");
    }
  },
};

export default function Alerts() {
  const [query] = useQuery();
  const isPolicies = query.view === "policies";
  const firing = useRead("/alerts", { state: "firing", limit: 100 }).data?.items.length;
  return (
    <>
      <PageHead title="Alerts" lead="Policies are judged every 15 seconds by the workers. An alert fires until its cause has been gone for a while." actions={<ActionButton action={TEST} />} />
      <div class="stack">
        <Tabs
          label="Alerts"
          path="alerts"
          name="view"
          query={query}
          tabs={[
            { value: undefined, label: "Firing", number: firing },
            { value: "resolved", label: "Resolved" },
            { value: "policies", label: "Policies" },
          ]}
        />
        {isPolicies ? <Policies /> : <AlertList state={query.view === "resolved" ? "resolved" : "firing"} />}
      </div>
    </>
  );
}

function AlertList({ state }: { state: "firing" | "resolved" }) {
  const list = useList("/alerts", { state }, idOf);
  return (
    <section class="card" aria-label="Alerts">
      <ListTable
        list={list}
        label="Alerts"
        noun="alert"
        columns={COLUMNS}
        keyOf={idOf}
        empty={
          state === "firing" ? (
            <Empty icon="check" title="No alert is firing">
              Alerts of the last days are under <Icon name="check" /> Resolved. “Test” sends a message to every sink.
            </Empty>
          ) : (
            <Empty icon="alerts" title="No alert has been resolved yet">Alerts appear here after their cause is gone.</Empty>
          )
        }
      />
    </section>
  );
}

function Policies() {
  const policies = useRead("/alerts/policies");
  return (
    <section class="card" aria-label="Policies">
      <Shown reading={policies}>
        {({ items }) => (
          <>
            <Table label="Policies" columns={POLICIES} rows={items} keyOf={(one) => one.name} />
            <div class="table-foot">{many(items.length, "policy", "policies")} in force</div>
          </>
        )}
      </Shown>
    </section>
  );
}
