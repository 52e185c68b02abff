import type { LoadApi } from '../../core/load-types.ts';

/** The endpoints that can be driven, as `--api` takes them. `chat` first: its path ends like that of `completions`. */
export const LOAD_APIS: readonly LoadApi[] = ['chat', 'completions', 'responses', 'embeddings'];
