//! Requests of OpenAI's API for JavaScript: what the engine and the page need of them.

use anygpu::ToolChoice;
use anygpu_openai::{EmbedRequest, Format, Notes, Prompt, Refusal, RerankRequest, Shape, TextRequest};
use bindings_common::engine_error as error;
use bindings_common::error::{coded, set};
use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::request::Request;

/// Returns a refusal as JavaScript sees it: the error names the field.
pub fn refused(refusal: Refusal) -> JsValue {
    let error = coded("options", &refusal.message);
    if let Some(field) = refusal.param {
        set(&error, "field", &field.into());
    }
    error.into()
}

/// Reads a request as JSON, of the API `chat`, `text`, `embedding` or `rerank`. Returns JSON: its prompts, and what belongs to them.
/// Fields that would have no effect are refused.
#[wasm_bindgen]
pub fn read_request(api: &str, text: &str) -> Result<String, JsValue> {
    let value: Value = serde_json::from_str(text).map_err(error::options)?;
    let notes = Notes::new(true);
    let read = match api {
        "chat" => asked(Shape::Chat, &value, &notes),
        "text" => asked(Shape::Text, &value, &notes),
        "embedding" => EmbedRequest::read(&value, &notes).map(|request| embedding(&request)),
        "rerank" => RerankRequest::read(&value, &notes).map(|request| ranking(&request)),
        _ => return Err(error::options(format!("there is no API {api}; there are chat, text, embedding and rerank"))),
    };
    Ok(read.map_err(refused)?.to_string())
}

fn prompt(prompt: &Prompt, request: &Value) -> Value {
    match prompt {
        Prompt::Text(text) => json!({ "text": text }),
        Prompt::Tokens(tokens) => json!({ "tokens": tokens }),
        Prompt::Chat(_) => json!({ "messages": request["messages"] }),
        Prompt::Pair(query, document) => json!({ "pair": [query, document] }),
    }
}

fn asked(shape: Shape, value: &Value, notes: &Notes) -> Result<Value, Refusal> {
    let request = TextRequest::read(shape, value, notes)?;
    let seed = request.seed(0, (js_sys::Math::random() * 2f64.powi(53)) as u64);
    let seeds: Vec<String> = (0..request.n as u64).map(|at| seed.wrapping_add(at).to_string()).collect();
    let chat = (shape == Shape::Chat).then(|| request.chat.clone());
    let demanded = request.chat.tool_choice.demands().then(|| match &request.chat.tool_choice {
        ToolChoice::Named(name) => json!({ "name": name }),
        _ => json!({}),
    });
    let wanted = request.format.as_ref().map(|asked| {
        let format = match &asked.format {
            Format::Object => json!("object"),
            Format::Schema(schema) => json!({ "schema": schema }),
            Format::Regex(regex) => json!({ "regex": regex }),
        };
        json!({ "format": format.to_string(), "field": asked.field })
    });
    Ok(json!({
        "prompts": request.prompts.iter().map(|one| prompt(one, value)).collect::<Vec<_>>(),
        "generate": Request::asked(request.answer(seed), chat),
        "seeds": seeds,
        "usage": request.stream && request.include_usage,
        "model": request.model,
        "wanted": wanted,
        "demanded": demanded,
    }))
}

fn embedding(request: &EmbedRequest) -> Value {
    json!({
        "prompts": request.texts.iter().map(|one| prompt(one, &Value::Null)).collect::<Vec<_>>(),
        "embed": { "dimensions": request.dimensions, "normalize": request.normalize, "scores": false },
        "base64": request.base64,
        "model": request.model,
    })
}

fn ranking(request: &RerankRequest) -> Value {
    json!({
        "prompts": request.pairs().iter().map(|one| prompt(one, &Value::Null)).collect::<Vec<_>>(),
        "embed": { "dimensions": null, "normalize": false, "scores": true },
    })
}

/// Makes the answer to a request to rank documents, as JSON, from their scores.
#[wasm_bindgen]
pub fn rerank_answer(text: &str, scores: &[f32], model: &str, prompt_tokens: usize) -> Result<String, JsValue> {
    let value: Value = serde_json::from_str(text).map_err(error::options)?;
    let request = RerankRequest::read(&value, &Notes::new(true)).map_err(refused)?;
    let model = request.model.as_deref().unwrap_or(model);
    Ok(request.answer(scores, model, prompt_tokens).to_string())
}
