import { StoreError } from '../../errors/classes.ts'
import type { Values } from '../engine.ts'
import { toRow } from '../rows.ts'
import type { StoredRow } from '../store.ts'
import { FORMAT } from './scripts.ts'

/** The keys of one scope. They share a hash tag, so that a cluster stores them on the same node. */
export interface ScopeKeys {
  row(id: string): string
  /** Index of all rows. Its sorted entries consist of a time, a space and an id. */
  readonly list: string
  /** Index of the open rows. Its sorted entries are ids. */
  readonly open: string
  /** Index of the closed rows in state `created`, with entries as in `list`. */
  readonly created: string
  /** Index of the closed rows in state `rejected`, with entries as in `list`. */
  readonly rejected: string
}

export function keysOf(prefix: string, scope: string): ScopeKeys {
  // Escapes braces, because a closing brace would end the hash tag. Redis ignores an empty tag, so
  // the tag of the empty scope is `%`. `%` is escaped, so no other scope has that tag.
  const tag = scope.replace(
    /[%{}\p{Cc}]/gu,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
  const base = `${prefix}{${tag === '' ? '%' : tag}}:`
  return {
    row: (id) => `${base}row:${id}`,
    list: `${base}list`,
    open: `${base}open`,
    created: `${base}created`,
    rejected: `${base}rejected`,
  }
}

export function scopeOfKey(key: string): string {
  const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'))
  const scope = tag.replace(/%([0-9a-f]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return tag === '%' ? '' : scope
}

/** All times in an index have this number of digits, so that they sort correctly as strings. */
const TIME_DIGITS = 16

/** Number of characters before the id in an entry of `list`, `created` and `rejected`. */
export const ENTRY_TIME_LENGTH: number = TIME_DIGITS + 1

/**
 * Rounds a time up, and limits it to the safe integers from 0. Every stored time is such an
 * integer, so comparisons have the same result.
 */
export function timeText(time: number): string {
  const whole = Math.ceil(Math.min(Math.max(time, 0), Number.MAX_SAFE_INTEGER))
  return String(whole).padStart(TIME_DIGITS, '0')
}

/** The first line of a stored row, without the marks, which a script appends. */
export function headOf({ version, open, state, createdAt = 0, updatedAt = 0 }: Values): string {
  for (const time of [createdAt, updatedAt]) {
    if (!Number.isSafeInteger(time) || time < 0) {
      throw new StoreError(
        `The order store cannot store the time ${time}: it must be a whole number of milliseconds ` +
          'from 0 to 2^53 - 1. Nothing was written.',
        { applied: false },
      )
    }
  }
  return [FORMAT, version, open ? 1 : 0, state, createdAt, timeText(updatedAt)].join(' ')
}

const HEAD = /^1 (\d+) ([01]) (open|created|rejected) (\d+) (\d+) \S+\n/

export function fromStored(scope: string, id: string, text: string): StoredRow {
  const [line = '', version, open, state, createdAt, updatedAt] = HEAD.exec(text) ?? []
  return toRow(scope, { id, version, open, state, createdAt, updatedAt, data: text.slice(line.length) })
}
