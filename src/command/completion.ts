/** Completion scripts for shells, written from the tables of commands and options. */
import { COMMANDS } from './commands.ts'
import { OTHERS } from './help.ts'
import type { OptionName } from './options.ts'
import { UsageError } from './terminal.ts'

const NAME = 'customer-ordering-sdk'

export function completion(common: readonly OptionName[], shell = ''): string {
  const make = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (make === undefined) throw new UsageError('completion requires the name of a shell: bash, zsh or fish.')
  return make(common)
}

/** For each command, the words that may follow it. */
function wordsByCommand(common: readonly OptionName[]): Map<string, string[]> {
  const found = new Map(Object.keys(OTHERS).map((name) => [name, []] as [string, string[]]))
  found.set('completion', Object.keys(SHELLS))
  for (const [name, { options }] of Object.entries(COMMANDS)) {
    const [first = '', ...sub] = name.split(' ')
    const words = [
      ...(found.get(first) ?? []),
      ...sub,
      ...[...options, ...common].map((option) => `--${option}`),
    ]
    found.set(first, [...new Set(words)])
  }
  return found
}

function bash(common: readonly OptionName[]): string {
  const words = wordsByCommand(common)
  const cases = [...words].map(([name, after]) => `    ${name}) words='${after.join(' ')}' ;;\n`).join('')
  return `_customer_ordering_sdk() {
  local words='${[...words.keys(), '--help', '--version'].join(' ')}'
  case "\${COMP_CWORD}:\${COMP_WORDS[COMP_CWORD-1]}" in
    *:--store) COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); return ;;
  esac
  [ "$COMP_CWORD" -gt 1 ] && case "\${COMP_WORDS[1]}" in
${cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _customer_ordering_sdk ${NAME}
`
}

const SHELLS: Readonly<Record<string, (common: readonly OptionName[]) => string>> = {
  bash,
  zsh: (common) => `autoload -U +X bashcompinit && bashcompinit\n${bash(common)}`,
  fish: (common) =>
    [...wordsByCommand(common)]
      .flatMap(([name, after]) => {
        const seen = `complete -c ${NAME} -n '__fish_seen_subcommand_from ${name}'`
        return [
          `complete -c ${NAME} -f -n __fish_use_subcommand -a ${name}`,
          `${seen} -f -a '${after.join(' ')}'`,
          ...(after.includes('--store') ? [`${seen} -l store -r -F`] : []),
        ]
      })
      .map((line) => `${line}\n`)
      .join(''),
}
