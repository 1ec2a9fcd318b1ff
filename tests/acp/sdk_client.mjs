// Drives an agent with the official TypeScript SDK, which checks every message. Run by test_clients.py: `sdk_client.mjs SDK COMMAND…`.
// Prints what it saw as JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${sdk}/dist/v1/stable/acp.js`).href);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => agent.on("exit", resolve));
const [cwd, mcpServers, seen] = [process.cwd(), [], { asked: 0 }];
let told = {};
const take = () => {
  const before = told;
  told = {};
  return before;
};

const app = acp.client({ name: "tests" });
app.onRequest("session/request_permission", async ({ params }) => {
  seen.asked += 1;
  const { optionId } = params.options.find((each) => each.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
});
app.onNotification("session/update", async ({ params }) => {
  const kind = params.update.sessionUpdate;
  told[kind] = (told[kind] ?? 0) + 1;
});
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (client) => {
  const clientCapabilities = { session: { notices: {}, compaction: {} } };
  const hello = await client.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
  const { sessionId } = await client.request("session/new", { cwd, mcpServers });
  const prompt = [{ type: "text", text: "go" }];
  const done = await client.request("session/prompt", { sessionId, prompt });
  Object.assign(seen, { version: hello.protocolVersion, agent: hello.agentInfo.name, stopped: done.stopReason, live: take() });
  await client.request("session/set_mode", { sessionId, modeId: "plan" });
  const set = await client.request("session/set_config_option", { sessionId, configId: "effort", value: "high" });
  seen.options = set.configOptions.map((each) => each.currentValue);
  seen.sessions = (await client.request("session/list", {})).sessions.length;
  take();
  await client.request("session/load", { sessionId, cwd, mcpServers });
  seen.loaded = take();
  await client.request("session/resume", { sessionId, cwd, mcpServers });
  await client.request("session/close", { sessionId });
  await client.request("session/delete", { sessionId });
  seen.left = (await client.request("session/list", {})).sessions.length;
});
agent.stdin.end();
seen.code = await ended;
console.log(JSON.stringify(seen));
