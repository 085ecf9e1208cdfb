/** What is used of the client; `js/test/site/vendored.js` says how `nats.js` is made. */

export interface Msg {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply?: string;
}

export interface Subscription {
  unsubscribe(): void;
}

export interface NatsConnection {
  /** Of the connection that there is now; undefined when it is closed. */
  readonly info?: { readonly server_id: string; readonly client_id: number; readonly max_payload: number };
  publish(subject: string, payload: Uint8Array): void;
  request(subject: string, payload: Uint8Array, options: { timeout: number }): Promise<Msg>;
  subscribe(subject: string, options: { callback: (error: Error | null, message: Msg) => void }): Subscription;
  status(): AsyncIterable<{ readonly type: string; readonly error?: Error }>;
  flush(): Promise<void>;
  close(): Promise<void>;
  closed(): Promise<void | Error>;
}

export interface ConnectionOptions {
  servers: string;
  name?: string;
  user?: string;
  pass?: string;
  timeout?: number;
  maxReconnectAttempts?: number;
  reconnectTimeWait?: number;
  ignoreAuthErrorAbort?: boolean;
  inboxPrefix?: string;
}

export function wsconnect(options: ConnectionOptions): Promise<NatsConnection>;
