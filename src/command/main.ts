#!/usr/bin/env node
import { runSandbox } from '../sandbox/cli.ts'
import { run } from './run.ts'
import { askBy } from './terminal.ts'

const { argv, env, stdin, stdout, stderr } = process
const parameters = argv.slice(2)
if (parameters[0] === 'sandbox') void runSandbox(parameters.slice(1))
else
  void run(parameters, {
    env,
    folder: process.cwd(),
    interactive: stdin.isTTY && stderr.isTTY,
    out: (text) => stdout.write(text),
    err: (text) => stderr.write(text),
    ask: askBy(stdin, stderr),
  }).then((code) => {
    process.exitCode = code
  })
