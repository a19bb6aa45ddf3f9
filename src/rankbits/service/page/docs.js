// The OpenAPI description of this server as a page: routes, fields, statuses, and a curl line for each.
import { getJson } from "./api.js";
import { byId, element } from "./dom.js";

const METHODS = ["get", "post", "put", "delete"];
let schemas = {};

async function start() {
  const description = await getJson("/openapi.json");
  schemas = description.components.schemas;
  const sections = [element("p", {}, description.info.description)];
  const groups = new Map();
  for (const [path, operations] of Object.entries(description.paths)) {
    for (const method of METHODS.filter((name) => name in operations)) {
      const operation = operations[method];
      const tag = operation.tags?.[0] ?? "other";
      groups.set(tag, [...(groups.get(tag) ?? []), section(method, path, operation)]);
    }
  }
  for (const [tag, parts] of groups) sections.push(element("h2", {}, tag[0].toUpperCase() + tag.slice(1)), ...parts);
  byId("operations").replaceChildren(...sections);
}

function section(method, path, operation) {
  const id = `${method}${path.replace(/\W+/g, "-")}`;
  return element("section", { id, "aria-labelledby": `${id}-heading` },
    element("h3", { id: `${id}-heading` }, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path)),
    element("p", {}, element("strong", {}, `${operation.summary}. `), ...withCode(operation.description ?? "")),
    operation.security ? element("p", {}, "Needs the header ", element("code", {}, "Authorization: Bearer TOKEN"), ".") : null,
    parameters(operation), fields(operation), curl(method, path, operation), statuses(operation));
}

function withCode(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

function table(head, rows, name) {
  const header = element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)));
  return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name },
    element("table", {}, element("thead", {}, header), element("tbody", {}, ...rows)));
}

function row(name, kind, text) {
  return element("tr", {}, element("td", {}, element("code", {}, name)), element("td", {}, kind), element("td", {}, text ?? ""));
}

function parameters(operation) {
  const rows = (operation.parameters ?? []).map((one) => row(one.name, `${one.in}, ${kindOf(one.schema)}`, one.description));
  return rows.length ? table(["Parameter", "Type", "Meaning"], rows, "Parameters") : null;
}

const bodyOf = (operation) => operation.requestBody?.content?.["application/json"]?.schema;

function fields(operation) {
  const schema = resolved(bodyOf(operation));
  if (!schema) return null;
  const rows = Object.entries(schema.properties).map(([name, field]) => row(name, kindOf(field), field.description));
  const binary = operation.requestBody.content["application/octet-stream"];
  const note = binary ? "As application/octet-stream, lists of numbers and codes are arrays in the layout of safetensors; all other fields are JSON texts in its header." : "";
  return element("div", {}, table(["Field", "Type", "Meaning"], rows, "Fields of the body"), element("p", { class: "hint" }, note));
}

function resolved(schema) {
  return schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
}

function kindOf(schema) {
  if (!schema) return "";
  const choices = (schema.anyOf ?? [schema]).map(resolved).filter((one) => one.type !== "null");
  return choices.map((one) => {
    if (one.const !== undefined) return JSON.stringify(one.const);
    if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
    if (one.type === "array" && one.minItems === one.maxItems && one.maxItems) return `${one.maxItems} × ${kindOf(one.items)}`;
    if (one.type === "array") return `list of ${kindOf(one.items)}${one.maxItems ? `, at most ${one.maxItems}` : ""}`;
    const low = one.minimum !== undefined ? ` from ${one.minimum}` : "", high = one.maximum < 1e15 ? ` to ${one.maximum}` : "";
    return `${one.type ?? "anything"}${low}${high}`;
  }).join(" or ");
}

function curl(method, path, operation) {
  const words = [`curl ${location.origin}${path.replace("{id}", "3")}`];
  if (method !== "get" && method !== "post") words.push(`-X ${method.toUpperCase()}`);
  if (operation.security) words.push("-H 'Authorization: Bearer TOKEN'");
  const schema = resolved(bodyOf(operation));
  if (schema) words.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(example(path, schema))}'`);
  return element("pre", { tabindex: "0", "aria-label": "Example" }, element("code", {}, words.join(" \\\n  ")));
}

function example(path, schema) {
  if (path === "/search") return { ids: [3], k: 10 };
  const one = (field) => {
    const choice = (field.anyOf ?? [field])[0];
    if (choice.pattern) return "0".repeat(Number(/\{(\d+)\}/.exec(choice.pattern)[1]));
    if (choice.type === "array") return new Array(Math.max(choice.minItems ?? 1, 1)).fill(one(choice.items));
    return choice.type === "string" ? "…" : 0;
  };
  const chosen = ["vectors", "vector", "codes", "code", "pictures"].find((name) => schema.properties[name]);
  const body = schema.properties.ids ? { ids: [3] } : {};
  return { ...body, [chosen]: one(schema.properties[chosen]) };
}

function statuses(operation) {
  const rows = Object.entries(operation.responses).map(([status, one]) => element("tr", {}, element("td", {}, status), element("td", {}, one.description)));
  return element("details", {}, element("summary", {}, "Statuses"), element("table", {}, element("tbody", {}, ...rows)));
}

start().catch((error) => byId("operations").replaceChildren(element("p", { role: "alert" }, error.message)));
