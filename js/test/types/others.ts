// Compiles only if the code of the subpaths fits their declarations.
import type { EmbeddingModel, LanguageModel } from "ai";
import type { AnyGpu } from "../../index.d.ts";
import type * as sdk from "../../ai-sdk.d.ts";
import type * as react from "../../react.d.ts";
import * as actualSdk from "../../src/with-ai-sdk.js";
import * as actualReact from "../../src/with-react.js";
import * as actualNode from "../../src/with-node.js";
import * as actual from "../../src/index.js";

export const models: typeof sdk = actualSdk;
export const hooks: typeof react = actualReact;
export const same: typeof actual = actualNode;
export const text = (engine: AnyGpu): LanguageModel => models.languageModel(engine);
export const vectors = (engine: AnyGpu): EmbeddingModel => models.embeddingModel(engine);
