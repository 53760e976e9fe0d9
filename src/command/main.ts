#!/usr/bin/env node
/** The program: the command of operators, and the two commands that start the sandbox. */
import { runSandbox } from '../sandbox/cli.ts'
import { serveSandbox } from '../sandbox/http/server.ts'
import { createSandbox } from '../sandbox/index.ts'
import { quickstart } from './quickstart.ts'
import { run } from './run.ts'
import { terminalOf } from './terminal.ts'

const parameters = process.argv.slice(2)
const [name] = parameters
if (name === 'sandbox') void runSandbox(parameters.slice(1))
else if (name === 'quickstart' && parameters.length === 1) {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  void serveSandbox(sandbox).then(async ({ url, close }) => {
    await quickstart({ baseUrl: url, apiKey: sandbox.apiKey, out: (text) => process.stdout.write(text) })
    await close()
  })
} else
  void run(parameters, terminalOf(process)).then((code) => {
    process.exitCode = code
  })
