// Integrity: the invariants of the record, a check on request, and the plan of a repair before it is done.
import { useState } from "preact/hooks";
import { get, post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { type Action, ActionButton } from "../parts/actions";
import { duration, many } from "../parts/format";
import { Icon } from "../parts/icon";
import { Empty, Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { labelOf, State } from "../parts/state";
import { type Column, Table } from "../parts/table";
import { Clip, Text } from "../parts/text";
import { Time } from "../parts/time";
import { pageUrl, thingUrl } from "../parts/url";
import "../styles/integrity.css";

type Violation = Schemas["Violation"];
type Step = Schemas["RepairStep"];
type Invariant = Schemas["Invariant"];

interface Check {
  at: string;
  seconds: number;
  violations: Violation[];
}

const KEPT = "detent.check";

/** The last check by this browser. The workers check all the time, and raise an alert. */
function keptCheck(): Check | null {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null") as Check | null;
  } catch {
    return null;
  }
}

function keepCheck(check: Check): void {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ ...check, violations: check.violations.slice(0, 100) }));
  } catch {
    /* storage is blocked: the check lasts as long as the page */
  }
}

function EntityLink({ entity, id }: { entity: string; id: string }) {
  const text = <Clip value={`${labelOf(entity)} ${id}`} />;
  return entity === "job" ? <a href={thingUrl("jobs", id)}>{text}</a> : text;
}

const VIOLATIONS: Column<Violation>[] = [
  { head: "Invariant", width: "28%", place: "lead", cell: (one) => <Clip value={labelOf(one.invariant)} /> },
  { head: "On", width: "22%", cell: (one) => <EntityLink entity={one.entity} id={one.entity_id} /> },
  { head: "What is wrong", cell: (one) => <span class="wrap"><Text value={one.detail} /></span> },
];

const STEPS: Column<Step>[] = [
  { head: "Can", width: "130px", place: "side", cell: (one) => <State state={one.can ? "succeeded" : "warning"} label={one.can ? "can be done" : "needs a person"} /> },
  { head: "Step", place: "lead", cell: (one) => <span class="wrap"><Text value={one.does} /></span> },
  { head: "On", width: "22%", cell: (one) => <EntityLink entity={one.entity} id={one.entity_id} /> },
  { head: "Invariant", width: "24%", cell: (one) => <Clip value={labelOf(one.invariant)} /> },
];

const INVARIANTS: Column<Invariant>[] = [
  { head: "Invariant", width: "30%", place: "lead", cell: (one) => <Clip value={labelOf(one.name)} /> },
  { head: "What holds", cell: (one) => <span class="wrap"><Text value={one.says} /></span> },
];

export default function Integrity() {
  const [check, setCheck] = useState<Check | null>(keptCheck);
  const [plan, setPlan] = useState<Step[] | null>(null);
  const alert = useRead("/alerts", { state: "firing", limit: 100 }).data?.items.find((one) => one.policy === "invariant_violated");
  const invariants = useRead("/record/invariants", {}, { once: true });

  const verify: Action = {
    label: "Check now",
    icon: "integrity",
    allowed: true,
    title: "Check every invariant now?",
    text: "This reads the whole database. With millions of jobs it takes minutes. Nothing is changed.",
    confirm: "Check",
    run: async () => {
      const began = Date.now();
      const { items } = await get("/record/verify");
      const done = { at: new Date().toISOString(), seconds: (Date.now() - began) / 1000, violations: items };
      keepCheck(done);
      setCheck(done);
      setPlan(null);
      return { message: items.length ? `${many(items.length, "violation")} found.` : "Healthy: no invariant is violated." };
    },
  };
  const planned: Action = {
    label: "Plan a repair",
    icon: "record",
    role: "admin",
    reason: "required",
    allowed: true,
    title: "Make the plan of a repair?",
    text: "It lists what a repair would do. Nothing is changed before you apply it.",
    confirm: "Make the plan",
    run: async (reason) => {
      const { items } = await post("/record/repair", { body: { apply: false, reason } });
      setPlan(items);
    },
  };
  const possible = plan?.filter((one) => one.can).length ?? 0;
  const repair: Action = {
    label: "Apply the plan",
    icon: "bolt",
    danger: true,
    role: "admin",
    reason: "required",
    allowed: !plan ? "Make the plan first." : possible === 0 ? "The plan has no step that can be done." : true,
    title: `Do ${many(possible, "step")} of the repair?`,
    text: "Each step is on record with your name and reason.",
    confirm: "Repair",
    run: async (reason) => {
      const { items } = await post("/record/repair", { body: { apply: true, reason } });
      setPlan(null);
      setCheck(null);
      return { message: `${many(items.filter((one) => one.can).length, "step")} done. Check again to be sure.` };
    },
  };
  return (
    <>
      <PageHead
        title="Integrity"
        lead="Conditions that always hold. Workers check them a step at a time and raise an alert; a whole check is made on request."
        actions={
          <>
            <ActionButton action={verify} primary />
            <ActionButton action={planned} />
          </>
        }
      />
      <div class="stack">
        <Verdict check={check} alert={alert?.message} since={alert?.since} />
        {check && check.violations.length > 0 && (
          <Card title="Violations" padded={false}>
            <Table label="Violations" columns={VIOLATIONS} rows={check.violations} keyOf={(one) => `${one.invariant} ${one.entity} ${one.entity_id}`} />
          </Card>
        )}
        {plan && (
          <Card
            title="Plan of a repair"
            padded={false}
            side={
              <>
                <ActionButton compact action={repair} />
                <button type="button" class="button small" onClick={() => setPlan(null)}>
                  Close the plan
                </button>
              </>
            }
          >
            {plan.length ? (
              <Table label="Plan of a repair" columns={STEPS} rows={plan} keyOf={(one) => `${one.invariant} ${one.entity} ${one.entity_id} ${one.does}`} />
            ) : (
              <Empty icon="check" title="Nothing to repair">Every row agrees with the record.</Empty>
            )}
          </Card>
        )}
        <Card title="Invariants" padded={false}>
          <Shown reading={invariants}>
            {({ items }) => <Table label="Invariants" columns={INVARIANTS} rows={items} keyOf={(one) => one.name} />}
          </Shown>
        </Card>
      </div>
    </>
  );
}

function Verdict({ check, alert, since }: { check: Check | null; alert: string | undefined; since: string | undefined }) {
  const isBad = Boolean(alert) || (check !== null && check.violations.length > 0);
  return (
    <section class={`card verdict ${isBad ? "bad" : check ? "good" : ""}`} aria-label="Last check" role="status">
      <Icon name={isBad ? "warning" : "integrity"} />
      <div>
        <strong>
          {check
            ? check.violations.length
              ? `${many(check.violations.length, "violation")} found by the last check`
              : "Healthy at the last check"
            : isBad
              ? "The workers found a violation"
              : "No violation is known"}
        </strong>
        <p class="soft small">
          {check ? (
            <>
              Checked from this browser <Time at={check.at} />, in {duration(check.seconds)}.{" "}
            </>
          ) : (
            "No whole check was made from this browser yet. "
          )}
          {alert ? (
            <>
              <a href={pageUrl("alerts")}>An alert</a> fires since <Time at={since} />: <Text value={alert} />
            </>
          ) : (
            "The workers' own checks have raised no alert."
          )}
        </p>
      </div>
    </section>
  );
}
