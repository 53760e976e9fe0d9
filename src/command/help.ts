/** The help of the command and of each of its commands, written from their tables. */
import { COMMANDS } from './commands.ts'
import { environmentName, OPTIONS, type OptionName, type Options } from './options.ts'

/** Commands that are not in the table, because they share no code with it. */
export const OTHERS: Readonly<Record<string, string>> = {
  quickstart: 'place an order whose response is lost, in the sandbox: five seconds, no account',
  sandbox: 'serve the in-memory sandbox: sandbox --help',
  completion: 'print a completion script: completion bash, zsh or fish',
}

export function help(common: readonly OptionName[], name = ''): string {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command !== undefined)
    return `customer-ordering-sdk ${[name, command.argument].filter(Boolean).join(' ')}: ${command.about}

${optionLines(OPTIONS, [...command.options, ...common])}`
  const abouts = Object.entries(COMMANDS).map(
    ([each, { about, argument }]) => [[each, argument].filter(Boolean).join(' '), about] as const,
  )
  return `customer-ordering-sdk: inspect and settle the orders of your program

  customer-ordering-sdk COMMAND [options]

${[...abouts, ...Object.entries(OTHERS)].map(([each, about]) => `  ${each.padEnd(20)}${about}\n`).join('')}
Options (COMMAND --help prints those of one command)
${optionLines(OPTIONS)}
REFERENCE is the externalOrderId in an order's metadata.
CUSTOMER_ORDERING_BASE_URL and CUSTOMER_ORDERING_API_KEY are read from the environment.
Exit codes: 0 done, 1 failed, 2 usage error, 3 orders need attention, 4 not confirmed, 130 interrupted.
`
}

export function optionLines(options: Options, names: readonly string[] = Object.keys(options)): string {
  return names
    .map((name) => {
      const { value = '', about = '', env } = options[name] ?? {}
      const lines = env ? `${about}\nor ${environmentName(name)}` : about
      return `  ${`--${name} ${value}`.padEnd(24)} ${lines.replaceAll('\n', `\n${' '.repeat(27)}`)}\n`
    })
    .join('')
}
