//! Every limit of the servers and clients, with its unit last in the name.

/// Largest JSON-RPC request, and largest message from a WebSocket client: twice the largest envelope or plain hint
/// list in hex, with room for a small batch of calls.
pub const MAX_REQUEST_BYTES: u32 = 1 << 20;
/// Largest request of a peer that has proved who it is: the largest release and hint list with every blinding factor
/// stated are 3,154,100 digits of hex.
pub const MAX_PEER_REQUEST_BYTES: u32 = 4 << 20;
/// Largest request of a coprocessor, and of who asks one: an invoice's key, quantities and prices are 2,986,200 digits
/// of hex.
pub const MAX_CONFIDENTIAL_REQUEST_BYTES: u32 = 3 << 20;
/// Largest answer or notification: a sealed batch of 8 MiB is 16 MiB of hex.
pub const MAX_MESSAGE_BYTES: u32 = 24 << 20;
/// Largest message from a WebSocket client: the largest envelope in hex, with room for some calls.
pub const MAX_WEBSOCKET_REQUEST_BYTES: u32 = 128 << 10;
/// Largest answer to a call over WebSocket; larger ones are for HTTP.
pub const MAX_WEBSOCKET_ANSWER_BYTES: u32 = 64 << 10;
/// How fast a WebSocket is read.
pub const MAX_WEBSOCKET_READ_BYTES_PER_SECOND: u64 = 1 << 20;
/// How much of a WebSocket is read at once.
pub const WEBSOCKET_READ_BYTES: usize = 8 << 10;
/// Most bytes of answers and notifications that one server holds: under way, or not written yet.
pub const MAX_ANSWER_BYTES: u64 = 512 << 20;
/// Most of them for one address.
pub const MAX_ANSWER_BYTES_PER_ADDRESS: u64 = 128 << 20;
/// What a call that is not known to have a large answer is counted for while it is under way. Larger answers are the
/// large ones.
pub const SMALL_ANSWER_BYTES: u64 = 4 << 10;
/// How long a call with a large answer waits for its part of the budget.
pub const ANSWER_WAIT_MS: u64 = 5_000;
/// Calls on one connection that are under way, or whose answers are not written; with so many it is not read.
pub const MAX_CALLS_PER_CONNECTION: usize = 64;
/// How long a connection may refuse to take what is written to it.
pub const WRITE_PATIENCE_MS: u64 = 10_000;
/// At what rate written bytes give back patience.
pub const MIN_WRITTEN_BYTES_PER_SECOND: u64 = 64 << 10;
/// Most open connections of one peer that has proved who it is; they do not count as others do.
pub const MAX_CONNECTIONS_PER_PEER: u32 = 32;
/// Connections that wait for a hello while all places are taken; the oldest gives way. Those from an address that a peer
/// has shown a hello from do not count among them, and give way to nobody.
pub const WAITING_CONNECTIONS: usize = 64;
/// Most of them from one address.
pub const WAITING_CONNECTIONS_PER_ADDRESS: usize = 8;
/// Addresses that are remembered for a peer's hello from them; the one whose hello is the oldest is forgotten.
pub const MAX_ADDRESSES_PER_PEER: usize = 8;
/// How long they wait, in milliseconds.
pub const WAITING_MS: u64 = 3_000;
/// How far a hello's time may be from ours.
pub const HELLO_WINDOW_MS: u64 = 60_000;
/// After how long a client makes a new hello.
pub const HELLO_RENEWAL_MS: u64 = 20_000;
/// How long a hello waits for its turn to be verified.
pub const HELLO_WAIT_MS: u64 = 2_000;
/// Bad hellos that are verified for one address within [`HELLO_PAUSE_MS`].
pub const MAX_BAD_HELLOS: u32 = 8;
/// How long no further hello is verified for an address that showed so many bad ones.
pub const HELLO_PAUSE_MS: u64 = 1_000;
/// Hellos of one peer that are remembered as good.
pub const MAX_HELLOS_PER_PEER: usize = 32;
/// What part of the budget of answers is kept for peers.
pub const PEERS_PART_OF_ANSWERS: u64 = 4;
/// What part of the budget of answers, and of each account's share, is kept for small answers.
pub const SMALL_PART_OF_ANSWERS: u64 = 4;
/// What part of the budget of answers large ones may take of all addresses. Between it and the part for small answers
/// there is room for notifications alone: whoever reads large answers slowly cuts no feed.
pub const LARGE_PART_OF_ANSWERS: u64 = 2;
/// How much of its share one account may take for large answers, in eighths: a JSON-RPC batch whose answers fill the
/// largest message has room for the call that adds the last one.
pub const LARGE_ANSWERS_OF_SHARE_EIGHTHS: u64 = 3;
/// What part of its share one account may take for notifications: more than the largest one.
pub const NOTIFICATIONS_PART_OF_SHARE: u64 = 4;
/// Most reads that one address, or peer, has under way at the execution client, which takes 128 in all; more wait.
pub const MAX_READS_PER_ADDRESS: usize = 16;
/// Most calls that one address has under way, reads at the execution client among them; more wait.
pub const MAX_CALLS_PER_ADDRESS: usize = 64;
/// Most calls of one address that wait for those under way; more are refused.
pub const MAX_WAITING_CALLS_PER_ADDRESS: usize = 512;
/// How long they wait, in milliseconds.
pub const TURN_WAIT_MS: u64 = 5_000;
/// Most calls in one JSON-RPC batch request.
pub const MAX_CALLS_PER_REQUEST: u32 = 100;
/// Most open connections of one server.
pub const MAX_CONNECTIONS: u32 = 1024;
/// Most open connections from one address.
pub const MAX_CONNECTIONS_PER_ADDRESS: u32 = 256;
/// Most calls per second from one address, averaged; zero switches the limit off.
pub const MAX_CALLS_PER_ADDRESS_PER_SECOND: u32 = 2_000;
/// How many seconds' worth of calls an address that was silent may send at once.
pub const CALL_BURST_SECONDS: u32 = 5;
/// Most addresses whose rate is remembered at once; beyond it the longest silent ones are forgotten.
pub const MAX_TRACKED_ADDRESSES: usize = 16_384;
/// How long a caller is told to stay away where nothing better is known.
pub const RETRY_AFTER_MS: u64 = 1_000;
/// Shortest time that a caller is told to stay away.
pub const MIN_RETRY_AFTER_MS: u64 = 100;
/// Longest such time.
pub const MAX_RETRY_AFTER_MS: u64 = 30_000;
/// How long one slot of a [`Pace`](crate::Pace) is, and how many of them count.
pub const PACE_SLOT_MS: u64 = 250;
/// See [`PACE_SLOT_MS`].
pub const PACE_SLOTS: usize = 16;
/// Connections beyond the limits that are told so, at a time; further ones are closed without a word.
pub const TURNED_AWAY_CONNECTIONS: usize = 1_024;
/// Most of them of one address: as many as may have places. With fewer a crowd of that size is told nothing in part.
pub const TURNED_AWAY_PER_ADDRESS: usize = MAX_CONNECTIONS_PER_ADDRESS as usize;
/// How long such a connection may take to send its request and read the answer, in milliseconds.
pub const TURNING_AWAY_MS: u64 = 2_000;
/// Most subscriptions on one connection; there are five topics.
pub const MAX_SUBSCRIPTIONS_PER_CONNECTION: u32 = 16;
/// Messages that wait for one connection before its subscriptions feel back-pressure.
pub const CONNECTION_BUFFER_MESSAGES: u32 = 16;
/// Notifications that wait for one subscriber inside the server before it is dropped as too slow.
pub const TOPIC_BUFFER_MESSAGES: usize = 256;
/// How long one notification may wait for a full connection before the subscriber is dropped.
pub const SLOW_CONSUMER_MS: u64 = 5_000;
/// How long a connection may take to send the headers of a request, or idle between two.
pub const HEADER_TIMEOUT_MS: u64 = 15_000;
/// How long a TLS handshake may take; nobody needs more than two round trips.
pub const HANDSHAKE_TIMEOUT_MS: u64 = 5_000;
/// Most open connections of a port for peers alone, unless set otherwise.
pub const MAX_PEER_CONNECTIONS: u32 = 256;
/// How long one HTTP call may take from its headers to its answer, the sending of its body included.
pub const CALL_TIMEOUT_MS: u64 = 60_000;
/// How often an open WebSocket is pinged.
pub const PING_INTERVAL_MS: u64 = 15_000;
/// After how long without an answer to pings a WebSocket is closed.
pub const PING_INACTIVE_MS: u64 = 45_000;
/// Pause after the operating system refused to accept a connection (out of file descriptors).
pub const ACCEPT_RETRY_MS: u64 = 50;
/// How long a stopping server waits for calls under way.
pub const SHUTDOWN_GRACE_MS: u64 = 5_000;

/// Most receipts that one call asks for, or one subscription follows.
pub const MAX_RECEIPTS: usize = 256;
/// Most receipts that subscriptions follow at one server.
pub const MAX_FOLLOWED_RECEIPTS: usize = 65_536;
/// Most receipts that calls wait for at one server: room of their own.
pub const MAX_AWAITED_RECEIPTS: usize = 16_384;
/// Most of either by one address, or peer.
pub const MAX_FOLLOWED_RECEIPTS_PER_ADDRESS: usize = 4_096;
/// How long an id that nobody knows is looked for whenever the chain moves; then as seldom as what came to an end.
pub const NEW_RECEIPT_MS: u64 = 10_000;
/// How long an id may be followed that nobody knows.
pub const UNKNOWN_RECEIPT_MS: u64 = 60_000;
/// How often receipts of envelopes that came to an end are read again: L1 seldom takes one back.
pub const ENDED_RECEIPTS_INTERVAL_MS: u64 = 10_000;
/// After how long receipts that could not be read are read again.
pub const RECEIPTS_RETRY_MS: u64 = 500;
/// How long a call that waits for a receipt, and was refused, looks for one all the same.
pub const REFUSED_RECEIPT_MS: u64 = 5_000;
/// Most calls of one address that wait for the chain.
pub const MAX_WAITERS_PER_ADDRESS: usize = 1_024;
/// How long a call that waits for a receipt waits unless it says so.
pub const SYNC_TIMEOUT_MS: u64 = 20_000;
/// How long it waits at most: less than a call may take.
pub const MAX_SYNC_TIMEOUT_MS: u64 = 50_000;

/// Most envelopes that a gateway forwards in one call.
pub const MAX_FORWARDED_ENVELOPES: usize = 256;
/// Most bytes of envelopes in one such call, unless it has a single one: in hex they leave room in a peer's largest request.
pub const MAX_FORWARDED_BYTES: usize = 1 << 20;

/// Most sequencers of one chain that a client is told of.
pub const MAX_SEQUENCER_URLS: usize = 16;
/// How long a server that stands for others may take to answer before the next one is asked beside it.
pub const SEVERAL_STEP_MS: u64 = 2_000;
/// Longest pause of a feed that has several servers before it tries them again, in milliseconds.
pub const SEVERAL_MAX_PAUSE_MS: u64 = 1_000;
/// How often a feed with somewhere else to go asks its server for a sign of life.
pub const SEVERAL_PING_INTERVAL_MS: u64 = 2_000;
/// After how long without any it goes there.
pub const SEVERAL_PING_INACTIVE_MS: u64 = 6_000;
/// How long a client waits for a connection.
pub const CLIENT_CONNECT_TIMEOUT_MS: u64 = 5_000;
/// How long a client waits for an answer.
pub const CLIENT_REQUEST_TIMEOUT_MS: u64 = 30_000;
/// Most calls of one client that await their answers.
pub const CLIENT_MAX_CONCURRENT_CALLS: usize = 256;
/// Notifications one subscription of a client may hold before it is closed as lagging.
pub const CLIENT_SUBSCRIPTION_BUFFER_MESSAGES: usize = 256;

/// How long a consumer of the binary feed that is dropped may take to read why.
pub const FEED_FAREWELL_MS: u64 = 1_000;
/// How much a server reads at once of a consumer of the binary feed, which sends two bytes and answers pings.
pub const FEED_READ_BUFFER_BYTES: usize = 512;
/// Largest frame in which a message of the binary feed is sent. Beside the budget of answers, each consumer holds one.
pub const FEED_FRAME_BYTES: usize = 64 << 10;
/// Events a [`Feed`](crate::Feed) holds for its consumer.
pub const FEED_BUFFER_EVENTS: usize = 64;
/// First pause of a feed before it connects again; each further one doubles.
pub const FEED_BACKOFF_INITIAL_MS: u64 = 100;
/// Longest pause of a feed before it connects again. Nothing is certified until members are back, and with ten seconds a new
/// chain, or a sequencer that was restarted, waited so long for them.
pub const FEED_BACKOFF_MAX_MS: u64 = 1_000;
/// A connection that lasted this long was a good one: the next pause starts small again.
pub const FEED_STABLE_MS: u64 = 10_000;

/// Longest `reason` or other free text in a parameter.
pub const MAX_TEXT_BYTES: usize = 256;
/// Longest cause repeated in an error about bad parameters.
pub const MAX_ERROR_DETAIL_CHARS: usize = 300;
