#!/usr/bin/env node
/** The program: the command of operators, and the two commands that start the sandbox. */
import { serveSandbox } from '../sandbox/http/server.ts'
import { createSandbox } from '../sandbox/index.ts'
import { quickstart } from './quickstart.ts'
import { run } from './run.ts'
import { runSandbox } from './sandbox.ts'
import { EXIT, type Exit, type Terminal, terminalOf } from './terminal.ts'

async function runQuickstart({ out, err }: Terminal): Promise<Exit> {
  const sandbox = createSandbox()
  sandbox.faults.add({ match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } })
  try {
    const { url, close } = await serveSandbox(sandbox)
    try {
      await quickstart({ baseUrl: url, apiKey: sandbox.apiKey, out })
    } finally {
      await close()
    }
    return EXIT.done
  } catch (error) {
    err(`customer-ordering-sdk: the quick start failed: ${String(error)}\n`)
    return EXIT.failed
  }
}

const parameters = process.argv.slice(2)
if (parameters[0] === 'sandbox') void runSandbox(parameters.slice(1))
else {
  const terminal = terminalOf(process)
  const running = parameters.join() === 'quickstart' ? runQuickstart(terminal) : run(parameters, terminal)
  void running.then((code) => {
    process.exitCode ??= code
  })
}
