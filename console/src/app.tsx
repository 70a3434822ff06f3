// The page around the views: sign in, navigation, language, and whether the scheduler answers.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, Problem } from "./api/client";
import { Feed, type FeedState } from "./api/feed";
import { currentToken, useToken as keepToken } from "./api/session";
import { Login } from "./login";
import { asProblem, Loading, ProblemBox } from "./parts/load";
import { RegionProvider, useFeedState } from "./parts/region";
import { linkTo, type Place, usePlace, VIEWS, type View } from "./router";
import {
  firstLanguage,
  keepLanguage,
  type Language,
  LanguageProvider,
  LANGUAGES,
  locale,
  useLocale,
} from "./text";
import { CapacityView } from "./views/capacity/view";
import { DecisionsView } from "./views/decision/view";
import { EvacuationsView } from "./views/evacuations/view";
import { PluginsView } from "./views/plugins/view";
import { PricesView } from "./views/prices/view";
import { ReplayView } from "./views/replay/view";
import { ServersView } from "./views/servers/view";
import { WhatIfView } from "./views/what-if/view";

type Access =
  | { kind: "asking" }
  | { kind: "login"; why: "first" | "refused" | "expired" }
  | { kind: "problem"; problem: Problem }
  | { kind: "in"; seesAll: boolean };

/** Views that need to see the whole region. */
const FOR_OPERATORS: readonly View[] = ["capacity", "plugins", "replay"];

export function App() {
  const [language, setLanguage] = useState<Language>(firstLanguage);
  const [access, setAccess] = useState<Access>({ kind: "asking" });
  const { text } = locale(language);
  useEffect(() => {
    document.documentElement.lang = language;
    document.title = text.title;
    keepLanguage(language);
  }, [language]);
  const ask = () => {
    setAccess({ kind: "asking" });
    void accessOf(currentToken()).then(setAccess);
  };
  useEffect(ask, []);
  const leave = (why: "first" | "expired") => {
    keepToken("");
    setAccess({ kind: "login", why });
  };
  return (
    <LanguageProvider value={language}>
      <a class="skip" href="#content" onClick={skip}>
        {text.skip}
      </a>
      {access.kind === "in" ? (
        <Signed
          seesAll={access.seesAll}
          language={language}
          setLanguage={setLanguage}
          leave={leave}
        />
      ) : (
        <>
          <header class="top">
            <span class="brand">Ebbtide</span>
            <LanguageChoice language={language} setLanguage={setLanguage} />
          </header>
          <main id="content" tabIndex={-1}>
            {access.kind === "asking" && <Loading />}
            {access.kind === "problem" && <ProblemBox problem={access.problem} again={ask} />}
            {access.kind === "login" && (
              <Login
                why={access.why}
                submit={(token) => {
                  keepToken(token);
                  ask();
                }}
              />
            )}
          </main>
        </>
      )}
    </LanguageProvider>
  );
}

/** The link must not change the part of the address that names the view. */
function skip(click: Event): void {
  click.preventDefault();
  document.getElementById("content")?.focus();
}

/** What a token may see. A region without authentication needs none. */
async function accessOf(token: string): Promise<Access> {
  try {
    await get("/v1/region");
    return { kind: "in", seesAll: true };
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status === 403) return { kind: "in", seesAll: false };
    if (problem.status === 401) {
      keepToken("");
      return { kind: "login", why: token === "" ? "first" : "refused" };
    }
    return { kind: "problem", problem };
  }
}

function Signed(props: {
  seesAll: boolean;
  language: Language;
  setLanguage: (language: Language) => void;
  leave: (why: "first" | "expired") => void;
}) {
  const { text } = useLocale();
  const place = usePlace();
  const feed = useMemo(() => new Feed(), []);
  const state = useFeedState(feed);
  const region = useMemo(() => ({ feed, seesAll: props.seesAll }), [feed, props.seesAll]);
  useEffect(() => {
    void feed.run();
    return () => feed.close();
  }, [feed]);
  useEffect(() => {
    if (state.kind === "refused" && state.problem.status === 401) props.leave("expired");
  }, [state]);
  const shown = VIEWS.filter((view) => props.seesAll || !FOR_OPERATORS.includes(view));
  const view = shown.includes(place.view) ? place.view : "evacuations";
  // The page of another view begins at its top, also for a screen reader.
  const content = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) content.current?.focus();
    first.current = false;
  }, [view, place.id]);
  return (
    <RegionProvider value={region}>
      <header class="top">
        <span class="brand">Ebbtide</span>
        <nav aria-label={text.navigation}>
          {shown.map((one) => (
            <a key={one} href={linkTo(one)} aria-current={one === view ? "page" : undefined}>
              {text.views[one]}
            </a>
          ))}
        </nav>
        <Pulse state={state} />
        <LanguageChoice language={props.language} setLanguage={props.setLanguage} />
        {currentToken() !== "" && (
          <button type="button" class="plain" onClick={() => props.leave("first")}>
            {text.signOut}
          </button>
        )}
      </header>
      <Lost state={state} />
      <main id="content" tabIndex={-1} ref={content}>
        <Shown view={view} place={place} />
      </main>
    </RegionProvider>
  );
}

function Shown(props: { view: View; place: Place }) {
  switch (props.view) {
    case "evacuations":
      return <EvacuationsView />;
    case "servers":
      return <ServersView />;
    case "decisions":
      return <DecisionsView id={props.place.id} victim={props.place.query.get("victim") ?? ""} />;
    case "capacity":
      return <CapacityView host={props.place.id} />;
    case "whatIf":
      return <WhatIfView />;
    case "prices":
      return <PricesView flavor={props.place.id} />;
    case "plugins":
      return <PluginsView />;
    case "replay":
      return <ReplayView day={props.place.id} />;
  }
}

/** Whether events arrive. */
function Pulse(props: { state: FeedState }) {
  const { text } = useLocale();
  const { kind } = props.state;
  if (kind === "lost" || kind === "refused") return null;
  const words = kind === "live" ? text.feed.live : text.feed.connecting;
  return <span class={`pulse ${kind}`}>{words}</span>;
}

/** Says that the scheduler does not answer, since when, and that the page goes on by itself. */
function Lost(props: { state: FeedState }) {
  const { text, time } = useLocale();
  const { state } = props;
  const wasLost = useRef(false);
  const [back, setBack] = useState(false);
  useEffect(() => {
    if (state.kind === "live" && wasLost.current) setBack(true);
    if (state.kind === "lost") setBack(false);
    wasLost.current = state.kind === "lost";
  }, [state]);
  return (
    <div role="status" class="banner-place">
      {state.kind === "lost" && <p class="banner bad">{text.feed.lost(time(state.since))}</p>}
      {state.kind === "refused" && (
        <p class="banner bad">
          {text.feed.refused} {state.problem.message}
        </p>
      )}
      {back && state.kind === "live" && <p class="banner good">{text.feed.back}</p>}
    </div>
  );
}

function LanguageChoice(props: { language: Language; setLanguage: (language: Language) => void }) {
  const { text } = useLocale();
  return (
    <label class="language">
      <span class="hidden">{text.languageChoice}</span>
      <select
        value={props.language}
        onChange={(change) => props.setLanguage(change.currentTarget.value as Language)}
      >
        {Object.entries(LANGUAGES).map(([code, texts]) => (
          <option key={code} value={code} lang={code}>
            {texts.language}
          </option>
        ))}
      </select>
    </label>
  );
}
