// The frame of all pages: sidebar, top bar, messages and dialogs.
import { signal } from "@preact/signals";
import { Route, Router, useLocation } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";
import { base } from "../api/client";
import { session } from "../api/session";
import { isLost, needsToken } from "../live/live";
import { NotFound, PAGES } from "../pages";
import { ActionDialog } from "../parts/actions";
import { Operations } from "../parts/bulk";
import { Icon } from "../parts/icon";
import { Text } from "../parts/text";
import { Toasts } from "../parts/toasts";
import { pageUrl } from "../parts/url";
import { Counters } from "./counters";
import { KeysDialog, keysAreShown, listenToKeys } from "./keys";
import { LiveButton } from "./live_button";
import { LogIn } from "./log_in";
import { Choices } from "./choices";

const menuIsOpen = signal(false);

export function Shell() {
  const { path, route } = useLocation();
  const main = useRef<HTMLElement>(null);
  useEffect(() => listenToKeys(route), []);
  useEffect(() => {
    menuIsOpen.value = false;
  }, [path]);
  if (needsToken.value) return <LogIn />;
  return (
    <>
      <a
        class="skip-link"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <div class="shell">
        <Sidebar path={path} />
        {menuIsOpen.value && (
          <button
            type="button"
            class="sidebar-shade"
            aria-label="Close the menu"
            onClick={() => {
              menuIsOpen.value = false;
            }}
          />
        )}
        <div class="main">
          <TopBar path={path} />
          {isLost.value && (
            <div class="banner" role="status">
              <Icon name="spinner" className="turning" /> The server does not answer. This page shows what was read last,
              and reconnects by itself.
            </div>
          )}
          <main class="content" id="main" tabIndex={-1} ref={main}>
            <Router>
              {PAGES.map((page) => (
                <Route key={page.path} path={`${base}${page.path}`} component={page.component} />
              ))}
              <Route default component={NotFound} />
            </Router>
          </main>
        </div>
      </div>
      <ActionDialog />
      {keysAreShown.value && <KeysDialog />}
      <Toasts>
        <Operations />
      </Toasts>
    </>
  );
}

function isCurrent(path: string, page: string): boolean {
  const place = `${path.replace(/\/$/, "")}/`;
  const own = page ? `${base}${page}/` : base;
  return page ? place.startsWith(own) : place === own;
}

const GROUPS = ["", "Work", "Set-up", "Watch"] as const;

function Sidebar({ path }: { path: string }) {
  return (
    <aside class={`sidebar ${menuIsOpen.value ? "open" : ""}`} id="sidebar">
      <a class="brand" href={pageUrl("")}>
        <img src={`${base}icon.svg`} alt="" />
        Detent
      </a>
      <nav aria-label="Pages">
        {GROUPS.map((group) => (
          <div class="nav-group" key={group}>
            {group && <h2>{group}</h2>}
            {PAGES.filter((page) => page.group === group).map((page) => (
              <a
                key={page.path}
                class="nav-link"
                href={pageUrl(page.path)}
                aria-current={isCurrent(path, page.path) ? "page" : undefined}
              >
                <Icon name={page.icon} />
                {page.title}
                <Counters path={page.path} />
              </a>
            ))}
          </div>
        ))}
      </nav>
      <div class="sidebar-foot">
        {session.value && (
          <p class="soft small clip">
            <Text value={session.value.name} /> · {session.value.role}
          </p>
        )}
        <Choices />
      </div>
    </aside>
  );
}

function TopBar({ path }: { path: string }) {
  const page = PAGES.find((one) => one.group !== undefined && isCurrent(path, one.path));
  const rest = page?.path ? decode(path.slice(`${base}${page.path}/`.length)) : "";
  return (
    <div class="topbar">
      <button
        type="button"
        class="button plain icon menu-button"
        aria-label="Menu"
        aria-expanded={menuIsOpen.value}
        aria-controls="sidebar"
        onClick={() => {
          menuIsOpen.value = !menuIsOpen.value;
        }}
      >
        <Icon name="menu" />
      </button>
      <nav class="crumbs grow" aria-label="Path">
        {page && rest && (
          <>
            <a href={pageUrl(page.path)}>{page.title}</a>
            <Icon name="right" />
            <span aria-current="page">
              <Text value={rest} />
            </span>
          </>
        )}
      </nav>
      <LiveButton />
      <button
        type="button"
        class="button plain icon"
        aria-label="Keys"
        onClick={() => {
          keysAreShown.value = true;
        }}
      >
        <Icon name="help" />
      </button>
    </div>
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
