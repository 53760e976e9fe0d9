import { StoreError } from '../../errors.ts'
import { plainError } from '../plain-error.ts'

/** Explanations for the error codes of servers. */
const REPLIES: Readonly<Record<string, string>> = {
  OOM: 'its memory is full. Give it more (`maxmemory`) or prune.',
  READONLY: 'it is a replica. Connect the client to the primary.',
  LOADING: 'it was just started and is still loading its data. Try again.',
  MISCONF: 'it cannot write to its disk. Make room there or read its log.',
  NOREPLICAS: 'fewer replicas are in sync than its `min-replicas-to-write` requires. Check the replicas.',
  CLUSTERDOWN: 'the cluster does not serve all slots: nodes are down or it is failing over. Try again.',
  MASTERDOWN: 'it is a replica that lost its primary. Connect the client to the primary.',
  TRYAGAIN: 'the cluster is moving the slot of these keys to another node. Try again when that is done.',
  MOVED: 'it is a node of a cluster. Pass a cluster client.',
  ASK: 'it is a node of a cluster. Pass a cluster client.',
  CROSSSLOT: 'the client puts something before the keys that breaks their hash tag. Leave braces out of it.',
  BUSY: "another client's script keeps it busy. Wait for that one or end it.",
  NOAUTH: 'it asks for a password. Give the client one.',
  WRONGPASS: "the client's user name or password is wrong.",
  NOPERM:
    "the client's user may not do this. Allow it EVAL, EVALSHA, GET, GETRANGE, SET, DEL, ZADD, ZREM and ZRANGEBYLEX " +
    "on the store's keys, and INFO.",
  WRONGTYPE:
    'something else writes to keys with the prefix of the store. Give the store a `prefix` of its own.',
}

const CONNECTION =
  'the client has no connection to it. Check that the server runs and that the client was connected.'
const TIMEOUT = 'it did not respond within the time limit of the client.'

/**
 * Codes that prove that nothing was written. Other codes of servers do not prove it for every call.
 */
const NOT_DONE: ReadonlySet<string> = new Set(['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS'])

/** The code in node-redis. ioredis has only a message. */
const REDIRECTIONS = 'MaxCommandRedirectionsError'

/** Explanations for errors of the clients and the network, by code or name of class. */
const CLIENT_FAILURES: Readonly<Record<string, string>> = {
  CONNECTION_CLOSED: CONNECTION,
  ECONNREFUSED: CONNECTION,
  ECONNRESET: CONNECTION,
  EHOSTUNREACH: CONNECTION,
  ENETUNREACH: CONNECTION,
  ENOENT: CONNECTION,
  ENOTFOUND: CONNECTION,
  EAI_AGAIN: CONNECTION,
  EPIPE: CONNECTION,
  ClientClosedError: CONNECTION,
  ClientOfflineError: CONNECTION,
  ClusterAllFailedError: CONNECTION,
  DisconnectsClientError: CONNECTION,
  MaxRetriesPerRequestError: CONNECTION,
  ReconnectStrategyError: CONNECTION,
  RootNodesUnavailableError: CONNECTION,
  SocketClosedUnexpectedlyError: CONNECTION,
  COMMAND_TIMEOUT: TIMEOUT,
  ETIMEDOUT: TIMEOUT,
  CommandTimeoutDuringMaintenanceError: TIMEOUT,
  ConnectionTimeoutError: TIMEOUT,
  SocketTimeoutDuringMaintenanceError: TIMEOUT,
  SocketTimeoutError: TIMEOUT,
  TimeoutError: TIMEOUT,
  [REDIRECTIONS]:
    'the nodes of the cluster send the client from one to the other. Try again when the cluster has settled.',
}

/** Errors of ioredis that have neither a code nor a class of their own. */
const TEXTS: Readonly<Record<string, string>> = {
  'Connection is closed.': 'CONNECTION_CLOSED',
  "Stream isn't writeable and enableOfflineQueue options is false": 'CONNECTION_CLOSED',
  'Command timed out': 'COMMAND_TIMEOUT',
}

/** Common part of the errors of scripts that the user may not run. */
const NOT_PERMITTED = /The user executing the script|ACL failure in script/

/**
 * Turns any error of a client into a {@link StoreError} that says which operation failed. It passes
 * on no message of the server or the client: some name hosts, keys and parameters.
 */
export function explain(error: unknown, access: 'read' | 'write'): StoreError {
  if (error instanceof StoreError) return error
  const cause = plainError(error, codeOf(error))
  const failed = `Cannot ${access === 'read' ? 'read from' : 'write to'} the order store in Redis`
  const reply = REPLIES[cause.code]
  const notDone = access === 'write' && NOT_DONE.has(cause.code)
  const sentences = [
    `${failed}: ${reply ?? CLIENT_FAILURES[cause.code] ?? `the client reports ${cause.code}.`}`,
  ]
  if (notDone) sentences.push('Nothing was written.')
  if (access === 'write' && reply === undefined) {
    sentences.push('What was being written may or may not have been.')
  }
  return new StoreError(sentences.join(' '), notDone ? { cause, applied: false } : { cause })
}

/** True if the server ran a script, but did not let it call a command. */
export function isRefusedInScript(error: unknown): boolean {
  return textOf(error).startsWith('ERR ')
}

/** The word in capitals with which every error of a server begins. */
function replyCode(text: string): string | undefined {
  const code = /^([A-Z]{2,}) /.exec(text)?.[1]
  if (code !== 'ERR') return code
  if (NOT_PERMITTED.test(text)) return 'NOPERM'
  if (text.includes('non local key')) return 'TRYAGAIN'
  // Before Redis 7, the code of an error inside a script comes later in the message.
  return /: -([A-Z]{2,}) /.exec(text)?.[1] ?? code
}

/** The server's code, otherwise the client's code or the name of the error. */
function codeOf(error: unknown): string {
  const text = textOf(error)
  const known = replyCode(text) ?? TEXTS[text]
  if (known !== undefined) return known
  if (text.startsWith('Too many Cluster redirections')) return REDIRECTIONS
  if (!(error instanceof Error)) return 'UNKNOWN'
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string') return code
  // node-redis names its errors by their classes only.
  return error.name === 'Error' ? error.constructor.name : error.name
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}
