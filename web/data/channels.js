// The kinds of channels and their fields, made from shared/alerts/src/channel_kinds.rs by tests/documents/channels.rs.

/** @type {Record<string, {title: string, members: {name: string, type: string, required: boolean}[]}>} */
export const CHANNELS = {
  ntfy: {"members":[{"name":"topic","required":true,"type":"text"},{"name":"server","required":false,"type":"text"},{"name":"token","required":false,"type":"password"}],"title":"ntfy"},
  telegram: {"members":[{"name":"token","required":true,"type":"password"},{"name":"chat","required":true,"type":"text"},{"name":"server","required":false,"type":"text"}],"title":"Telegram"},
  slack: {"members":[{"name":"address","required":true,"type":"text"}],"title":"Slack"},
  discord: {"members":[{"name":"address","required":true,"type":"text"}],"title":"Discord"},
  home_assistant: {"members":[{"name":"address","required":true,"type":"text"}],"title":"Home Assistant"},
  webhook: {"members":[{"name":"address","required":true,"type":"text"},{"name":"key","required":true,"type":"password"}],"title":"the webhook"},
  email: {"members":[{"name":"topic_arn","required":true,"type":"text"}],"title":"Amazon SNS"},
};
