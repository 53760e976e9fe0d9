import { codeOrName, type Failures, NETWORK, type Trouble } from '../failure.ts'

/** The error's name in node-redis. ioredis has no name or code for too many redirections. */
const REDIRECTIONS = 'MaxCommandRedirectionsError'

/** Codes of the server, of a client or of the network, and class names of a client's errors. */
const TROUBLES: readonly Trouble[] = [
  ["the server's memory is full. Raise `maxmemory`, or prune old orders.", 'OOM'],
  ['the server is a replica. Connect the client to the primary.', 'READONLY'],
  ['the server has just started and is still loading its data. Try again.', 'LOADING'],
  ["the server cannot write to its disk. Free up space, or check the server's log.", 'MISCONF'],
  [
    "fewer replicas are in sync than the server's `min-replicas-to-write` requires. Check the replicas.",
    'NOREPLICAS',
  ],
  [
    'the cluster does not serve all slots: nodes are down, or a failover is in progress. Try again.',
    'CLUSTERDOWN',
  ],
  ['the server is a replica that lost its primary. Connect the client to the primary.', 'MASTERDOWN'],
  [
    'the cluster is moving the slot of these keys to another node. Try again when the move is complete.',
    'TRYAGAIN',
  ],
  ['the server is a node of a cluster. Pass a cluster client.', 'MOVED', 'ASK'],
  [
    "the client's key prefix breaks the hash tag of the keys. Remove the braces from that prefix.",
    'CROSSSLOT',
  ],
  [
    'a script blocks the server. Wait until it ends. SCRIPT KILL stops it only before its first write.',
    'BUSY',
  ],
  ['the server requires a password. Configure one in the client.', 'NOAUTH'],
  ["the client's user name or password is wrong. Check both.", 'WRONGPASS'],
  [
    "the client's user lacks a permission. Allow it to run EVAL, EVALSHA, GET, GETRANGE, SET, DEL, PERSIST, " +
      "ZADD, ZREM and ZRANGEBYLEX on the store's keys, and INFO.",
    'NOPERM',
  ],
  ['other code writes to keys of the store. Give that code other keys.', 'WRONGTYPE'],
  [
    'the server did not respond in time. Try again.',
    ...['COMMAND_TIMEOUT', 'ETIMEDOUT', 'CommandTimeoutDuringMaintenanceError', 'ConnectionTimeoutError'],
    ...['SocketTimeoutDuringMaintenanceError', 'SocketTimeoutError', 'TimeoutError'],
  ],
  [
    'the client is not connected. Check that the server is running and that you connected the client.',
    ...NETWORK,
    ...['CONNECTION_CLOSED', 'ClientClosedError', 'ClientOfflineError', 'ClusterAllFailedError'],
    ...['DisconnectsClientError', 'MaxRetriesPerRequestError', 'ReconnectStrategyError'],
    ...['RootNodesUnavailableError', 'SocketClosedUnexpectedlyError'],
  ],
  [
    "the cluster's nodes keep redirecting the client to each other. Try again when the cluster has settled.",
    REDIRECTIONS,
  ],
]

export const REDIS_FAILURES: Failures = {
  place: 'Redis',
  troubles: TROUBLES,
  // Redis returns these codes before the first write of a script. Omits READONLY: what a replica
  // does not contain proves nothing about the primary.
  notApplied: /^(OOM|MISCONF|NOREPLICAS)$/,
  notRun: /^(READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|MOVED|ASK|CROSSSLOT|BUSY|NOAUTH|WRONGPASS)$/,
  codeOf,
}

/** ioredis gives these errors neither a code nor a class, so they are recognised by message. */
const TEXTS: Readonly<Record<string, string>> = {
  'Connection is closed.': 'CONNECTION_CLOSED',
  "Stream isn't writeable and enableOfflineQueue options is false": 'CONNECTION_CLOSED',
  'Command timed out': 'COMMAND_TIMEOUT',
}

const NOT_PERMITTED = /The user executing the script|ACL failure in script/

export function isRefusedInScript(error: unknown): boolean {
  return textOf(error).startsWith('ERR ')
}

function replyCode(text: string): string | undefined {
  const code = /^([A-Z]{2,}) /.exec(text)?.[1]
  if (code !== 'ERR') return code
  if (NOT_PERMITTED.test(text)) return 'NOPERM'
  if (text.includes('non local key')) return 'TRYAGAIN'
  // Before Redis 7, the code of an error inside a script comes later in the message.
  return /: -([A-Z]{2,}) /.exec(text)?.[1] ?? code
}

function codeOf(error: unknown): string {
  const text = textOf(error)
  const known = replyCode(text) ?? TEXTS[text]
  if (known !== undefined) return known
  if (text.startsWith('Too many Cluster redirections')) return REDIRECTIONS
  const named = codeOrName(error)
  // node-redis gives its errors no code, only classes.
  return named === 'Error' ? Object(error).constructor.name : named
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}
