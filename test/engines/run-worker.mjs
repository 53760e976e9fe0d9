// run-worker.mjs FILE: runs a bundled worker in workerd and prints its response.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import workerd from 'workerd'

const file = process.argv[2]
const config = `${file}.capnp`
writeFileSync(
  config,
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "worker", worker = (
      modules = [(name = "worker", esModule = embed "${basename(file)}")],
      bindings = [
        (name = "SMOKE_BASE_URL", fromEnvironment = "SMOKE_BASE_URL"),
        (name = "SMOKE_API_KEY", fromEnvironment = "SMOKE_API_KEY"),
      ],
      compatibilityDate = "2026-07-01",
      globalOutbound = "network",
    )),
    (name = "network", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);
`,
)
// workerd reports its port on the given file descriptor.
const stdio = ['ignore', 'inherit', 'inherit', 'pipe']
const child = spawn(workerd.default, ['serve', config, '--control-fd=3'], { stdio })
for await (const line of createInterface({ input: child.stdio[3] })) {
  const response = await fetch(`http://127.0.0.1:${JSON.parse(line).port}/`)
  console.log(await response.text())
  if (!response.ok) process.exitCode = 1
  child.kill()
}
