export interface Script {
  readonly text: string
  sha1(): Promise<string>
}

function script(text: string): Script {
  let digest: Promise<string> | undefined
  return {
    text,
    sha1: () => {
      digest ??= crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)).then(hexadecimal)
      return digest
    },
  }
}

function hexadecimal(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const FORMAT = 1

/**
 * Lua pattern for format, version, open, state, createdAt and updatedAt. It captures only the
 * fields that the scripts need.
 */
const HEAD = `^${FORMAT} (%d+) ([01]) (%a+) %d+ (%d+)`

/** Lua pattern for the first line of a stored row: {@link HEAD}, then marks of the last writes. */
const STORED = `'${HEAD} (%S+)\\n'`

/** Length of a mark, the random string by which a script recognises a resent write. */
export const MARK_LENGTH = 12

/**
 * Number of marks that a row stores. If other clients write the row this many times before a client
 * resends a write, the client no longer finds its own mark.
 */
const MARKS = 32

/** Maximum length of all marks but the newest, separated by commas. */
const OLD_MARKS_LENGTH = (MARKS - 1) * (MARK_LENGTH + 1) - 1

/** Upper bound for the length of the first line of a stored row. */
const HEAD_LENGTH = 511

/**
 * Writes a row and its index entries. A missing permission, or another program's value under a key,
 * may stop the script halfway. Because of the order of the commands, every open row then still has
 * its entry in `open`. PRUNE checks each row, so an outdated entry removes no row.
 *
 * KEYS: row, list, open, created, rejected. ARGV: id, mark, row without its data, data.
 */
const PUT = `
local entry = updated .. ' ' .. ARGV[1]
redis.call('ZADD', KEYS[2], 0, entry)
if open == '1' then redis.call('ZADD', KEYS[3], 0, ARGV[1]) end
redis.call('SET', KEYS[1], ARGV[3] .. ' ' .. marks .. '\\n' .. ARGV[4])
local closed = open == '0' and (state == 'created' and KEYS[4] or state == 'rejected' and KEYS[5])
if closed then redis.call('ZADD', closed, 0, entry) end`

/**
 * KEYS: any key of the scope, so that a cluster runs the script on the scope's node. Returns the
 * server's `INFO`.
 */
export const INSPECT: Script = script(`
local text = ''
for _, section in ipairs({'replication', 'memory', 'persistence'}) do
  text = text .. redis.call('INFO', section)
end
return {text}`)

/**
 * A write that changes nothing, because no key expires. It fails on a replica, which may lag behind,
 * and on a primary that has lost its replicas. A full disk also rejects it (MISCONF), but does not
 * make a read wrong.
 */
const ON_PRIMARY = `
local write = redis.pcall('PERSIST', KEYS[1])
if type(write) == 'table' and write.err and not string.find(write.err, 'MISCONF', 1, true) then
  return write
end`

/** KEYS: row. Returns the stored string, or an empty list if there is no row. */
export const GET: Script = script(`${ON_PRIMARY}
local found = redis.call('GET', KEYS[1])
if found then return {found} end
return {}`)

/**
 * KEYS: row, list, open, created, rejected. ARGV: id, mark, row without its data, data. Returns
 * `written`, or `found` and the existing string.
 *
 * A client that lost its connection may resend a script that has already run. If the script finds
 * its own mark, the write was made, whatever happened to the row since.
 */
export const INSERT: Script = script(`
local found = redis.call('GET', KEYS[1])
if found then${ON_PRIMARY}
  local _, _, _, _, oldMarks = string.match(found, ${STORED})
  if oldMarks and string.find(oldMarks, ARGV[2], 1, true) then return {'written'} end
  return {'found', found}
end
local _, open, state, updated = string.match(ARGV[3], '${HEAD}$')
local marks = ARGV[2]${PUT}
return {'written'}`)

/**
 * KEYS: row, list, open, created, rejected. ARGV: id, mark, row without its data, data, expected
 * version. Returns `written`, `other` if the row is missing or has another version, or `foreign` if
 * this version of the package cannot read the row.
 *
 * Its first writes change nothing. They let a server whose memory is full store the outcomes of
 * orders in progress: Redis checks its memory only until the first write of a script, and never for
 * PERSIST or ZREM. The first ZREM also fails before any change if the user may not call ZREM.
 */
export const UPDATE: Script = script(`${ON_PRIMARY}
local found = redis.call('GETRANGE', KEYS[1], 0, ${HEAD_LENGTH})
if found == '' then return {'other'} end
local version, _, _, oldUpdated, oldMarks = string.match(found, ${STORED})
if not version then return {'foreign'} end
if string.find(oldMarks, ARGV[2], 1, true) then return {'written'} end
if version ~= ARGV[5] then return {'other'} end
local _, open, state, updated = string.match(ARGV[3], '${HEAD}$')
local marks = ARGV[2] .. ',' .. string.sub(oldMarks, 1, ${OLD_MARKS_LENGTH})
redis.call('ZREM', KEYS[2], '')${PUT}
local old = oldUpdated .. ' ' .. ARGV[1]
if open == '0' then redis.call('ZREM', KEYS[3], ARGV[1]) end
if old ~= entry then redis.call('ZREM', KEYS[2], old) end
for index = 4, 5 do
  if old ~= entry or KEYS[index] ~= closed then redis.call('ZREM', KEYS[index], old) end
end
return {'written'}`)

/**
 * KEYS: an index. ARGV: the index's name, the start, the limits (entries, bytes of data), and the
 * position of the id in an entry. Returns the entry from which to continue (empty at the end), then
 * the id and the stored string of each row.
 */
export const PAGE: Script = script(`${ON_PRIMARY}
local rows = string.sub(KEYS[1], 1, -1 - #ARGV[1]) .. 'row:'
local limit, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local entries = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], '+', 'LIMIT', 0, limit + 1)
local reply, size = {''}, 0
for position, entry in ipairs(entries) do
  if position > limit or size >= most then
    reply[1] = entries[position - 1]
    break
  end
  local id = string.sub(entry, tonumber(ARGV[5]))
  local text = redis.call('GET', rows .. id)
  if text then
    reply[#reply + 1] = id
    reply[#reply + 1] = text
    size = size + #text
  end
end
return reply`)

/**
 * KEYS: list, and created or rejected. ARGV: the time before which rows are removed, the maximum
 * number of rows, and the state. Returns how many entries it found and how many rows it removed.
 * The script removes a row before the row's entries. In the reverse order, an interrupted run could
 * leave a row that no later run finds.
 */
export const PRUNE: Script = script(`
local rows = string.sub(KEYS[1], 1, -1 - #'list') .. 'row:'
local entries = redis.call('ZRANGEBYLEX', KEYS[2], '-', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
local removed = 0
for _, entry in ipairs(entries) do
  local row = rows .. string.sub(entry, 18)
  local _, open, state, updated = string.match(redis.call('GETRANGE', row, 0, ${HEAD_LENGTH}), '${HEAD}')
  if open == '0' and state == ARGV[3] and updated == string.sub(entry, 1, 16) then
    removed = removed + redis.call('DEL', row)
    redis.call('ZREM', KEYS[1], entry)
  end
  redis.call('ZREM', KEYS[2], entry)
end
return {tostring(#entries), tostring(removed)}`)
