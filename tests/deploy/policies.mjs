// Evaluates calls of IAM, as JSON on standard input, by @cloud-copilot/iam-simulate. Knows no policy of its own.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [, , place] = process.argv;
const { runSimulation } = createRequire(`${place}/package.json`)("@cloud-copilot/iam-simulate");
const { account, roles, calls } = JSON.parse(readFileSync(0, "utf8"));

const results = [];
for (const { role, action, resource, keys } of calls) {
  const answer = await runSimulation(
    {
      request: {
        principal: `arn:aws:iam::${account}:role/${role}`,
        action,
        resource: { accountId: account, resource },
        // A request that names no key has no such key at all.
        contextVariables: keys.length > 0 ? { "dynamodb:LeadingKeys": keys } : {},
      },
      identityPolicies: roles[role],
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: undefined,
    },
    {},
  );
  if (answer.resultType === "error") {
    console.error(`${role} ${action} ${resource}: ${JSON.stringify(answer.errors)}`);
    process.exit(2);
  }
  results.push(answer.overallResult === "Allowed");
}
console.log(JSON.stringify(results));
