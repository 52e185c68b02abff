/** What an answer may be at most: a server that is broken or hostile must not exhaust the client. */

/** Status line and headers, and trailers, each. */
export const MAX_HEAD_BYTES: number = 64 * 1024;

/** One line and one event of a stream. A delta is below a kilobyte; `response.completed` holds the whole answer. */
export const MAX_EVENT_BYTES: number = 4 * 1024 * 1024;

/** An answer that is not streamed; embeddings of a batch are the largest (2,048 inputs of 3,072 floats: about 60 MB). */
export const MAX_ANSWER_BYTES: number = 64 * 1024 * 1024;

/** What is read of the body of an error, to say what it said. */
export const MAX_ERROR_BYTES: number = 16 * 1024;

/** Text of an answer that is kept for the next turn of a conversation. */
export const MAX_TEXT_CHARACTERS: number = 1024 * 1024;

/** Buffers that grew larger than this for one answer are given back after it. */
export const KEPT_BUFFER_BYTES: number = 64 * 1024;

/** Informational answers (1xx) before the final one. */
export const MAX_INFORMATIONAL = 16;

/** Characters of an error's detail. */
export const DETAIL_CHARACTERS = 300;
