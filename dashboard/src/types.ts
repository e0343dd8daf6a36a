// The JSON of the API, as docs/openapi.yaml has it. Unknown is null or absent,
// never 0, so nearly every figure is optional here.

export type Maybe<T> = T | null | undefined

export type Status = 'queued' | 'running' | 'paused' | 'completed' | 'partial' | 'failed' | 'cancelled'

export interface Reason { limit: string; by: string; asked: string; granted: string; message: string }

export interface Effective {
  pages: number
  pages_by: string
  time_ms: number
  time_by: string
  per_host: number
  page_stop: string
  time_stop: string
  reasons: Maybe<Reason[]>
}

export interface Progress {
  processed: number
  successful: number
  failed: number
  throttled: number
  blocked: number
  skipped: number
  timeouts: number
  requests: number
  http_429: number
  retries: number
  bytes: number
  queued?: Maybe<number>
  in_flight?: Maybe<number>
  pages_per_second?: Maybe<number>
  eta_seconds?: Maybe<number>
  eta_reason?: Maybe<string>
}

export interface JobRequest {
  url?: string
  urls?: string[]
  type?: string
  profile?: string
  pages?: number
  seconds?: number
  depth?: number
  scope?: string
  include?: string[]
  exclude?: string[]
  seeding?: string
  per_host?: number
  concurrency?: number
  delay_ms?: number
  priority?: number
  webhook?: string
  label?: string
}

export interface Job {
  id: string
  tenant: string
  type: string
  status: Status
  error?: Maybe<string>
  success?: Maybe<boolean>
  label?: Maybe<string>
  urls: Maybe<string[]>
  priority: number
  profile?: Maybe<string>
  position?: Maybe<number>
  waiting_for?: Maybe<string>
  created_at: string
  started_at?: Maybe<string>
  ended_at?: Maybe<string>
  updated_at?: Maybe<string>
  limits?: Maybe<Effective>
  pages?: Maybe<{ reserved: number; spent: number }>
  progress?: Maybe<Progress>
  request?: Maybe<JobRequest>
  webhook?: Maybe<string>
  schedule?: Maybe<string>
}

export interface RobotsDecision {
  allowed: boolean
  rule?: Maybe<string>
  line?: Maybe<number>
  crawl_delay_ms?: Maybe<number>
  fetched_at?: Maybe<string>
  confidence?: Maybe<number>
  ignored?: Maybe<boolean>
}

export interface Page {
  id?: Maybe<number | string>
  url: string
  outcome: string
  status?: Maybe<number>
  host?: Maybe<string>
  via?: Maybe<string>
  depth?: Maybe<number>
  tries?: Maybe<number>
  bytes?: Maybe<number>
  ms?: Maybe<number>
  title?: Maybe<string>
  error?: Maybe<string>
  redirect_to?: Maybe<string>
  fetched_at?: Maybe<string>
  at?: Maybe<string>
  robots?: Maybe<RobotsDecision>
  linked_from?: Maybe<string[]>
  linked_from_count?: Maybe<number>
}

export interface Host {
  host: string
  state: string
  queued?: Maybe<number>
  in_flight?: Maybe<number>
  cap?: Maybe<number>
  gap_ms?: Maybe<number>
  learned_ms?: Maybe<number>
  until?: Maybe<string>
  reason?: Maybe<string>
  requests_per_second?: Maybe<number>
  http_429?: Maybe<number>
  worker?: Maybe<string>
}

export interface WaitReason { reason: string; hosts: number; urls: number }

export interface Layer { name: string; used: Maybe<number>; limit: Maybe<number> }

export interface Live {
  running: boolean
  at: string
  elapsed_seconds?: Maybe<number>
  queued?: Maybe<number>
  in_flight?: Maybe<number>
  uncommitted?: Maybe<number>
  pages_per_second?: Maybe<number>
  bytes_per_second?: Maybe<number>
  classes?: Maybe<number[]>
  outcomes?: Maybe<Record<string, number>>
  progress?: Maybe<Progress>
  hosts?: Maybe<Record<string, number>>
  busiest?: Maybe<Host[]>
  waiting?: Maybe<Host[]>
  waits?: Maybe<WaitReason[]>
  eta_seconds?: Maybe<number>
  eta_reason?: Maybe<string>
  binding?: Maybe<string>
  layers?: Maybe<Layer[]>
}

export interface Point {
  at: string
  pages_per_second?: Maybe<number>
  classes?: Maybe<number[]>
  http_429?: Maybe<number>
}

export interface Series { step_seconds: number; points: Maybe<Point[]> }

export interface Evidence {
  type: string
  url?: Maybe<string>
  content?: Maybe<Record<string, unknown>>
  metadata?: Maybe<Record<string, unknown>>
  confidence?: Maybe<number>
  at?: Maybe<string>
  line?: Maybe<number>
  fetched_at?: Maybe<string>
}

export interface Explanation {
  input: string
  url: string
  changes?: Maybe<string[]>
  at: string
  live: boolean
  without?: Maybe<string>
  kind: string
  fate: string
  headline: string
  waits?: Maybe<{ for: string; until?: Maybe<string>; about?: boolean }>
  next?: Maybe<string>
  found?: Maybe<{ on?: string; via: string; depth: number; redirect_chain?: string[] }>
  scope?: Maybe<{ ok: boolean; rule: string; depth: number }>
  robots?: Maybe<{
    allowed: boolean; rule?: string; line?: number; crawl_delay_ns?: number; fetched_at?: string
    confidence: number; ignored?: boolean; foreseen?: boolean; expired?: boolean
  }>
  robots_url: string
  priority?: Maybe<{ rank: number; words: string }>
  queue?: Maybe<{ place: string; ahead: number; tries: number; not_before?: string }>
  host?: Maybe<{
    group: string; state: string; from: string; waiting?: number; in_flight: number; cap: number; gap_ns: number
    gap_for: string; until?: string; reason?: string; learned_delay_ns?: number; http_429?: number
  }>
  requests?: Maybe<Attempt[]>
  result?: Maybe<{
    outcome: string; meaning: string; status?: number; error?: string; content_type?: string; bytes: number
    took_ns: number; at: string; title?: string; redirect_to?: string; links: number; tries: number
    nofollow?: boolean; noindex?: boolean
  }>
}

export interface Attempt {
  started: string
  ended: string
  status?: number
  outcome: string
  cause: string
  sent: boolean
  error?: string
  waited_ns?: number
  waited_for?: string
  gap_owed_ns: number
  gap_owed_for?: string
  asked_until?: string
}

export interface Domain {
  host: string
  adaptive_delay_ms?: Maybe<number>
  adaptive_delay_floor_ms?: Maybe<number>
  crawl_delay_ms?: Maybe<number>
  blocked_until?: Maybe<string>
  block_reason?: Maybe<string>
  error_streak?: Maybe<number>
  success_streak?: Maybe<number>
  last_success?: Maybe<string>
  updated?: Maybe<string>
}

export interface Schedule {
  id: string
  name?: Maybe<string>
  rule: string
  job: JobRequest
  enabled: boolean
  created_at: string
  next_at?: Maybe<string>
  last_at?: Maybe<string>
  last_job?: Maybe<string>
  skipped?: Maybe<number>
  note?: Maybe<string>
}

export interface Delivery {
  id: number | string
  event: string
  url: string
  attempts: number
  next_at?: Maybe<string>
  done_at?: Maybe<string>
  status?: Maybe<number>
  error?: Maybe<string>
}

export interface Usage {
  month: string
  used: number
  reserved: number
  quota?: Maybe<number>
  left?: Maybe<number>
  resets_at?: Maybe<string>
}

export interface Plan {
  name: string
  pages_per_crawl: number
  concurrent_crawls: number
  per_host: number
  schedules: number
  monthly_pages: number
}

export interface Limits {
  safety: { max_pages_per_crawl: Maybe<number>; max_concurrent_crawls: Maybe<number>; crawl_timeout_ms: Maybe<number> }
  plan: Plan
  usage: Usage
  order: string
}

export interface Preview { limits: Effective; position?: Maybe<number>; ok: boolean; message?: Maybe<string> }

export interface Me { tenant?: Maybe<{ id: string; name: string; plan: string }>; key: { id: string; name: string; scopes: string[] }; orders?: boolean }

export interface Engine {
  layers?: Maybe<Layer[]>
  waiting?: Maybe<WaitReason[]>
  queue?: Maybe<{ queued: number; running: number; slots: number }>
  commit_ms?: Maybe<number>
  version?: Maybe<string>
  processes?: Maybe<number>
  hosts?: Maybe<number>
  in_flight?: Maybe<number>
  pages_per_second?: Maybe<number>
}

export interface Worker {
  id: string
  machine: string
  self: boolean
  state: string
  started_at?: Maybe<string>
  heard_at?: Maybe<string>
  hosts: number
  in_flight: number
  pages_per_second: number
  waiting?: Maybe<string>
}

export interface Workers { items: Worker[]; at?: Maybe<string>; waiting?: Maybe<string>; lease_seconds?: Maybe<number> }

export interface Key {
  id: string
  name?: Maybe<string>
  scopes: string[]
  created_at?: Maybe<string>
  last_used_at?: Maybe<string>
  revoked_at?: Maybe<string>
}

export interface Tenant {
  id: string
  name: string
  plan: string
  weight?: Maybe<number>
  disabled?: Maybe<boolean>
  created_at?: Maybe<string>
}

export interface Action {
  id: number | string
  at: string
  key?: Maybe<string>
  action: string
  target?: Maybe<string>
  detail?: unknown
  remote?: Maybe<string>
}

export interface List<T> { items: Maybe<T[]>; next?: Maybe<string> }

export const ended = (s: Status) => s === 'completed' || s === 'partial' || s === 'failed' || s === 'cancelled'
