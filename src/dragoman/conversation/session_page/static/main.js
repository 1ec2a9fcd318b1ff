// Where the page is, by what stands behind the `#`; the way in; and keys that work everywhere.
import { html, render, useLayoutEffect, useState } from "./preact.js";
import { ComparePage } from "./compare.js";
import { ListPage } from "./list.js";
import { SessionPage } from "./session.js";
import * as source from "./source.js";
import { plain, setWords, t } from "./words.js";

const KEYS = ["j k", "n p", "g G", "o", "e", "r", "y", "/", "[ ]", "1 2 3 4", "s", "?", "Esc"];

function placeInPage(hash) {
  const [path, search] = hash.replace(/^#/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decoded), params: new URLSearchParams(search) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody cut a link
  }
}

function App({ about }) {
  const [place, setPlace] = useState(placeInPage(location.hash));
  const [helps, setHelps] = useState(false);
  useLayoutEffect(() => {
    const moved = () => setPlace(placeInPage(location.hash));
    const onKey = (event) => {
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setHelps((before) => !before);
      if (event.key === "s" && !source.embedded) location.hash = "#/";
      if (event.key === "Escape") setHelps(false);
    };
    addEventListener("hashchange", moved);
    addEventListener("keydown", onKey);
    return () => (removeEventListener("hashchange", moved), removeEventListener("keydown", onKey));
  }, []);
  const first = source.embedded?.first;
  const [kind, ...rest] = place.parts.length || !first ? place.parts : ["s", first];
  return html`<a class="skip" href="#page" onClick=${(event) => (event.preventDefault(), document.querySelector("main")?.querySelector("input, a, button")?.focus())}>${t("skip")}</a>
    <header><nav aria-label="Dragoman">${!source.embedded && html`<a href="#/" aria-current=${kind ? undefined : "page"}>${t("sessions")}</a>`}
      ${about.pages.map(([name, , label]) => html`<a href=${`#/${name}`} aria-current=${kind === name ? "page" : undefined}>${t(label)}</a>`)}</nav>
      <button onClick=${() => setHelps(!helps)} aria-expanded=${helps}>${t("keys")}</button></header>
    ${helps && html`<section class="keys" aria-label=${t("keys")}><dl>${KEYS.map((key, place) => html`<dt><kbd>${key}</kbd></dt><dd>${t(`key_${place}`)}</dd>`)}</dl></section>`}
    ${pageOf(kind, rest, place.params, about)}`;
}

function pageOf(kind, rest, params, about) {
  const more = about.pages.find(([name]) => name === kind);
  if (more) return html`<${more[1]} rest=${rest} params=${params} about=${about} />`;
  if (kind === "s" && rest[0]) return html`<${SessionPage} key=${rest[0]} id=${rest[0]} view=${rest.slice(1)} params=${params} about=${about} />`;
  if (kind === "compare" && rest[1]) return html`<${ComparePage} key=${rest.join()} ids=${rest} />`;
  return html`<${ListPage} />`;
}

function Entrance({ fault, again }) {
  const [password, setPassword] = useState("");
  const [wrong, setWrong] = useState(fault);
  const enter = (event) => {
    event.preventDefault();
    source.enter({ password }).then(again, (error) => setWrong(error.message));
  };
  return html`<main class="entrance"><h1>Dragoman</h1><p class="bad" role="alert">${plain(wrong)}</p><p>${t("how_to_enter")}</p>
    <form onSubmit=${enter}><label>${t("password")} <input type="password" autocomplete="current-password" value=${password} onInput=${(event) => setPassword(event.target.value)} /></label>
      <button>${t("enter")}</button></form></main>`;
}

async function begin() {
  setWords(await source.words());
  const page = document.getElementById("page");
  const { parts, params } = placeInPage(location.hash);
  try {
    if (params.has("token")) {
      const token = params.get("token");
      history.replaceState(null, "", `#/${parts.map(encodeURIComponent).join("/")}`);
      await source.enter({ token });
    }
    const about = await source.about();
    about.pages = await morePages(about);
    render(html`<${App} about=${about} />`, page);
  } catch (error) {
    render(html`<${Entrance} fault=${error.message} again=${begin} />`, page);
  }
}

// Pages that not every server has: name, component, label.
async function morePages(about) {
  const pages = about.talk ? [["talk", (await import("./talk.js")).TalkPage, "talk"]] : [];
  return about.fleets ? [...pages, ["fleet", (await import("./fleet.js")).FleetPage, "fleets"]] : pages;
}

// A new address that is pasted over an old one changes only what stands behind the `#`, and loads nothing by itself.
addEventListener("hashchange", () => placeInPage(location.hash).params.has("token") && location.reload());
begin();
