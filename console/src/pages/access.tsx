// Webhooks and tokens: how others reach this server.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../api/client";
import { useRead } from "../api/query";
import { mayChange } from "../api/session";
import { type Action, ActionButton } from "../parts/actions";
import { Icon } from "../parts/icon";
import { ListEnd, News, useList } from "../parts/list";
import { Empty, Failure, Loading, Shown } from "../parts/notices";
import { Card, PageHead } from "../parts/page";
import { State } from "../parts/state";
import { Absent, type Column, Table } from "../parts/table";
import { Clip, Copyable, Text } from "../parts/text";
import { Time } from "../parts/time";
import { useQuery } from "../parts/url";
import "../styles/access.css";

type Token = Schemas["Token"];
type Created = Schemas["CreatedToken"];
type Webhook = Schemas["Webhook"];

const LIVES: [string, string][] = [
  ["604800", "a week"],
  ["2592000", "30 days"],
  ["31536000", "a year"],
  ["", "until it is revoked"],
];

function createAction(show: (created: Created) => void): Action {
  return {
    label: "Create a token",
    icon: "key",
    role: "admin",
    allowed: true,
    title: "Create a token",
    text: "Its text is shown once. Its name is the actor of every change that is made with it.",
    fields: (
      <>
        <div class="field">
          <label for="token-name">Name</label>
          <input id="token-name" name="name" class="input" required maxLength={100} autocomplete="off" placeholder="ana, ci, grafana" />
        </div>
        <div class="field">
          <label for="token-role">Role</label>
          <select id="token-role" name="role" class="select">
            <option value="viewer">viewer: reads</option>
            <option value="operator">operator: also acts on jobs, runs and queues</option>
            <option value="admin">admin: may do everything</option>
          </select>
        </div>
        <div class="field">
          <label for="token-tenant">Tenant (empty for all)</label>
          <input id="token-tenant" name="tenant" class="input" maxLength={100} autocomplete="off" />
        </div>
        <div class="field">
          <label for="token-life">Valid for</label>
          <select id="token-life" name="life" class="select">
            {LIVES.map(([seconds, label]) => (
              <option key={label} value={seconds}>
                {label}
              </option>
            ))}
          </select>
        </div>
      </>
    ),
    confirm: "Create",
    run: async (reason, form) => {
      const life = String(form.get("life"));
      const created = await post("/tokens/{name}/create", {
        parts: { name: String(form.get("name")).trim() },
        body: {
          role: String(form.get("role")) as Token["role"],
          tenant: String(form.get("tenant")).trim() || null,
          expires_in: life ? Number(life) : null,
          reason,
        },
      });
      show(created);
    },
  };
}

function revokeAction(token: Token): Action {
  return {
    label: "Revoke",
    icon: "slash",
    danger: true,
    role: "admin",
    allowed: token.revoked_at ? token.revoked_by ? `It was revoked by ${token.revoked_by}.` : "It was revoked." : true,
    title: `Revoke the token ${token.name}?`,
    text: "It is refused from now on, for good. Open pages and streams of it end within ten seconds.",
    run: async (reason) => {
      await post("/tokens/{name}/revoke", { parts: { name: token.name }, body: { reason } });
      return { message: `The token ${token.name} is revoked.` };
    },
  };
}

function stateOf(token: Token): [string, string] {
  if (token.revoked_at) return ["cancelled", "revoked"];
  if (token.expires_at && Date.parse(token.expires_at) < Date.now()) return ["expired", "expired"];
  return ["active", "valid"];
}

/** A token that has left the list of usable ones was revoked. */
const revokedNow = (token: Token): Token => ({ ...token, revoked_at: new Date().toISOString() });

const TOKENS: Column<Token>[] = [
  { head: "Name", width: "20%", place: "lead", cell: (one) => <Clip value={one.name} /> },
  { head: "State", width: "104px", place: "side", cell: (one) => <State state={stateOf(one)[0]} label={stateOf(one)[1]} /> },
  { head: "Role", width: "100px", cell: (one) => one.role },
  { head: "Tenant", width: "12%", cell: (one) => (one.tenant === null ? <span class="soft">all</span> : <Clip value={one.tenant} />) },
  { head: "Created by", cell: (one) => <Clip value={one.created_by} /> },
  { head: "Created", width: "106px", right: true, cell: (one) => <Time at={one.created_at} /> },
  { head: "Last used", width: "106px", right: true, cell: (one) => (one.last_used_at ? <Time at={one.last_used_at} /> : <Absent />) },
  { head: "Expires", width: "106px", right: true, cell: (one) => (one.expires_at ? <Time at={one.expires_at} /> : <span class="soft">never</span>) },
  { head: "Actions", width: "110px", right: true, actions: true, cell: (one) => <ActionButton compact action={revokeAction(one)} /> },
];

const WEBHOOKS: Column<Webhook>[] = [
  { head: "Name", width: "24%", place: "lead", cell: (one) => <Clip value={one.name} /> },
  { head: "State", width: "100px", place: "side", cell: (one) => <State state={one.is_on ? "active" : "paused"} label={one.is_on ? "on" : "no secret"} /> },
  { head: "Signed as", width: "20%", cell: (one) => <Clip value={one.verify} /> },
  { head: "Path", cell: (one) => <Copyable text={one.path} what="the path" /> },
  { head: "Largest body", width: "120px", right: true, cell: (one) => <span class="number">{sizeText(one.size_max)}</span> },
];

function sizeText(bytes: number): string {
  return bytes >= 1e6 ? `${+(bytes / 1e6).toFixed(1)} MB` : `${Math.round(bytes / 1e3)} kB`;
}

export default function Access() {
  const webhooks = useRead("/webhooks", { limit: 100 });
  return (
    <>
      <PageHead title="Webhooks and tokens" lead="How other programs and people reach this server." />
      <div class="stack">
        <Tokens />
        <Card title="Incoming webhooks" padded={false}>
          <Shown reading={webhooks}>
            {({ items }) =>
              items.length ? (
                <Table label="Webhooks" columns={WEBHOOKS} rows={items} keyOf={(one) => one.name} />
              ) : (
                <Empty icon="link" title="No webhook is declared">
                  Declare one in code: <code>@app.webhook("github-push", secret=…)</code>. Deliveries to its path become jobs.
                </Empty>
              )
            }
          </Shown>
        </Card>
      </div>
    </>
  );
}

function Tokens() {
  const [query, setQuery] = useQuery();
  const [created, setCreated] = useState<Created | null>(null);
  const isAdmin = mayChange("admin");
  const list = useList("/tokens", { revoked: query.revoked === "1" }, (one) => one.id);
  return (
    <Card
      title="Tokens"
      padded={false}
      side={
        <>
          <label class="check">
            <input
              type="checkbox"
              checked={query.revoked === "1"}
              onChange={(event) => setQuery({ revoked: event.currentTarget.checked ? "1" : undefined }, { replace: true })}
            />
            Revoked too
          </label>
          <ActionButton compact action={createAction(setCreated)} />
        </>
      }
    >
      {created && (
        <div class="new-token" role="status">
          <Icon name="key" />
          <div class="grow">
            <p>
              The token of <strong><Text value={created.name} /></strong> ({created.role}). Copy it now: it is not shown again.
            </p>
            <Copyable text={created.token} what="the token" always>
              <code class="token-text">{created.token}</code>
            </Copyable>
          </div>
          <button type="button" class="button small" onClick={() => setCreated(null)}>
            I have copied it
          </button>
        </div>
      )}
      <News list={list} noun="token" />
      {list.rows.length ? (
        <>
          <Table
            label="Tokens"
            columns={TOKENS}
            rows={list.rows.map((one) => (list.isGone(one) ? revokedNow(one) : one))}
            keyOf={(one) => one.id}
            isGone={list.isGone}
          />
          <ListEnd list={list} noun="token" />
        </>
      ) : list.reading.problem ? (
        isAdmin === true ? (
          <Failure problem={list.reading.problem} retry={list.reading.refresh} />
        ) : (
          <Empty icon="key" title="Tokens are for admins">{isAdmin}</Empty>
        )
      ) : !list.reading.data ? (
        <Loading />
      ) : (
        <Empty icon="key" title="There is no token yet" command="detent tokens create NAME --role operator">
          Without a token the server answers on this machine only, and everyone on it may do everything.
        </Empty>
      )}
    </Card>
  );
}
