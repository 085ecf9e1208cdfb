//! Requests: which values pass, which are refused, and that the documentation has all fields.

use anygpu::{Sampling, ToolChoice};
use anygpu_openai::{
    EmbedRequest, FIELDS, Format, Kind, Notes, Prompt, Refusal, RerankRequest, Rule, Shape, Table, TextRequest,
};
use serde_json::{Value, json};

/// Adds fields to an object.
fn with(mut object: Value, more: &Value) -> Value {
    let (object_fields, more) = (object.as_object_mut().unwrap(), more.as_object().unwrap());
    object_fields.extend(more.clone());
    object
}

fn read(shape: Shape, request: &Value) -> Result<TextRequest, Refusal> {
    TextRequest::read(shape, request, &Notes::new(true))
}

fn chat(more: &Value) -> Result<TextRequest, Refusal> {
    read(Shape::Chat, &with(json!({ "messages": [{ "role": "user", "content": "hi" }] }), more))
}

fn text(more: &Value) -> Result<TextRequest, Refusal> {
    read(Shape::Text, &with(json!({ "prompt": "a" }), more))
}

fn turn(more: &Value) -> Result<TextRequest, Refusal> {
    read(Shape::Chat, &json!({ "messages": [with(json!({ "role": "assistant", "content": "hi" }), more)] }))
}

fn embedding(more: &Value) -> Result<EmbedRequest, Refusal> {
    EmbedRequest::read(&with(json!({ "input": "a" }), more), &Notes::new(true))
}

fn rerank(more: &Value) -> Result<RerankRequest, Refusal> {
    RerankRequest::read(&with(json!({ "query": "a", "documents": ["b"] }), more), &Notes::new(true))
}

/// Asks with one more field. Returns what the engine is asked for, in a form that can be compared.
fn asked(table: &str, more: &Value) -> Result<String, Refusal> {
    let shown = |request: TextRequest| {
        let TextRequest { prompts, chat, n, model, format, .. } = &request;
        format!("{prompts:?} {chat:?} {n} {model:?} {format:?} {:?}", request.answer(0))
    };
    match table {
        "requests for text" | "requests for an answer in a conversation" => chat(more).map(shown),
        "requests to continue a text" => text(more).map(shown),
        "requests for embeddings" => {
            embedding(more).map(|EmbedRequest { texts, dimensions, normalize, model, base64 }| {
                format!("{texts:?} {dimensions:?} {normalize} {model:?} {base64}")
            })
        }
        "requests to rank documents" => rerank(more).map(|request| format!("{request:?}")),
        "messages" => turn(more).map(shown),
        _ => panic!("no requests of {table}"),
    }
}

#[test]
fn null_and_neutral_values_are_as_if_they_were_left_out() {
    for (name, table) in FIELDS {
        let plain = asked(name, &json!({})).unwrap();
        for (field, rule) in *table {
            if ["messages", "prompt", "input", "query", "documents", "role", "content"].contains(field) {
                continue;
            }
            let neutral = match rule {
                Rule::Only(neutral, _) | Rule::Noted(neutral, _) => neutral,
                Rule::Use(_) | Rule::Ignored => &[][..],
            };
            for value in neutral.iter().chain(&["null"]) {
                let value: Value = serde_json::from_str(value).unwrap();
                assert_eq!(asked(name, &json!({ *field: value })).as_deref(), Ok(&plain[..]), "{field} of {name}");
            }
        }
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name_with_a_remedy() {
    for (name, table) in FIELDS {
        for (field, rule) in *table {
            let Rule::Only(..) = rule else { continue };
            let refusal = asked(name, &json!({ *field: { "an": "object" } })).unwrap_err();
            let path = if *name == "messages" { format!("messages[0].{field}") } else { (*field).to_owned() };
            assert_eq!(refusal.param, Some(path), "{field} of {name}");
            let (what, why) = refusal.message.split_once(": ").unwrap();
            assert!(what.contains("is not supported") || what.contains("can only be"), "{what}");
            assert!(why.len() > 10, "{why}");
        }
    }
}

#[test]
fn values_of_another_kind_are_refused_by_name() {
    for (name, table) in FIELDS {
        for (field, rule) in *table {
            let Rule::Use(kind) = rule else { continue };
            let wrong = if matches!(kind, Kind::Object(_)) { json!("text") } else { json!({ "an": ["object"] }) };
            let free = ["chat_template_kwargs", "guided_json", "json_schema"].contains(field);
            let refusal = asked(name, &json!({ *field: if free { json!(5) } else { wrong } })).unwrap_err();
            let param = refusal.param.clone().unwrap();
            let path = if *name == "messages" { format!("messages[0].{field}") } else { (*field).to_owned() };
            assert!(param.starts_with(&path), "{field} of {name}: {refusal:?}");
        }
    }
}

/// A request that is wrong, and the field that is.
type Wrong = (fn(&Value) -> Result<TextRequest, Refusal>, Value, &'static str);

#[test]
fn what_makes_no_sense_is_refused_and_the_field_is_named() {
    let tool = |function: Value| json!([{ "type": "function", "function": function }]);
    let many: serde_json::Map<String, Value> = (0..33).map(|at| (format!("v{at}"), json!(at))).collect();
    let cases: Vec<Wrong> = vec![
        (text, json!({ "prompt": 5 }), "prompt"),
        (text, json!({ "prompt": [1, -1] }), "prompt"),
        (text, json!({ "prompt": [1, "two"] }), "prompt"),
        (text, json!({ "prompt": ["one", 2] }), "prompt[1]"),
        (text, json!({ "max_tokens": 0 }), "max_tokens"),
        (text, json!({ "max_tokens": 1.5 }), "max_tokens"),
        (text, json!({ "max_tokens": "5" }), "max_tokens"),
        (text, json!({ "overflow": "truncate" }), "overflow"),
        (text, json!({ "keep": -1 }), "keep"),
        (text, json!({ "temperature": "number NaN" }), "temperature"),
        (text, json!({ "top_p": 1.5 }), "top_p"),
        (text, json!({ "top_k": -2 }), "top_k"),
        (text, json!({ "seed": 1.5 }), "seed"),
        (text, json!({ "stop": [""] }), "stop"),
        (text, json!({ "fetch_interval": 65 }), "fetch_interval"),
        (text, json!({ "stream": "yes" }), "stream"),
        (text, json!({ "n": 0 }), "n"),
        (text, json!({ "n": 129 }), "n"),
        (text, json!({ "logprobs": true }), "logprobs"),
        (text, json!({ "logprobs": 21 }), "logprobs"),
        (text, json!({ "maxTokens": 2 }), "maxTokens"),
        (text, json!({ "messages": [] }), "messages"),
        (text, json!({ "tools": [] }), "tools"),
        (text, json!({ "stream_options": { "x": 1 } }), "stream_options.x"),
        (text, json!({ "presence_penalty": 2.1 }), "presence_penalty"),
        (text, json!({ "repetition_penalty": 0 }), "repetition_penalty"),
        (text, json!({ "min_p": 1.1 }), "min_p"),
        (text, json!({ "logit_bias": { "a": 1 } }), "logit_bias"),
        (text, json!({ "logit_bias": { "5": 101 } }), "logit_bias.5"),
        (chat, json!({ "logprobs": 5 }), "logprobs"),
        (chat, json!({ "logprobs": true, "top_logprobs": 21 }), "top_logprobs"),
        (chat, json!({ "top_logprobs": 1 }), "top_logprobs"),
        (chat, json!({ "prompt": "a" }), "prompt"),
        (chat, json!({ "messages": [] }), "messages"),
        (chat, json!({ "messages": null }), "messages"),
        (chat, json!({ "messages": ["hi"] }), "messages[0]"),
        (chat, json!({ "messages": [{ "content": "hi" }] }), "messages[0].role"),
        (chat, json!({ "messages": [{ "role": "", "content": "hi" }] }), "messages[0].role"),
        (chat, json!({ "messages": [{ "role": "user", "content": null }] }), "messages[0].content"),
        (chat, json!({ "messages": [{ "role": "user", "content": "hi", "colour": "red" }] }), "messages[0].colour"),
        (
            chat,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
            "messages[0].content[0].type",
        ),
        (
            chat,
            json!({ "messages": [{ "role": "user", "content": [{ "image_url": {} }] }] }),
            "messages[0].content[0].image_url",
        ),
        (
            chat,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "text" }] }] }),
            "messages[0].content[0].text",
        ),
        (chat, json!({ "messages": [{ "role": "tool", "content": "2" }] }), "messages[0].tool_call_id"),
        (turn, json!({ "tool_calls": [{ "id": "1" }] }), "messages[0].tool_calls[0].function"),
        (
            turn,
            json!({ "tool_calls": [{ "function": { "name": "f", "arguments": "[1]" } }] }),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (chat, json!({ "tools": [{}] }), "tools[0].type"),
        (chat, json!({ "tools": [{ "type": "custom", "function": { "name": "f" } }] }), "tools[0].type"),
        (chat, json!({ "tools": tool(json!({ "name": "a b" })) }), "tools[0].function.name"),
        (chat, json!({ "tools": vec![tool(json!({ "name": "f" }))[0].clone(); 129] }), "tools"),
        (chat, json!({ "tool_choice": "required" }), "tool_choice"),
        (
            chat,
            json!({ "tools": tool(json!({ "name": "f" })), "tool_choice": { "type": "function", "function": { "name": "h" } } }),
            "tool_choice",
        ),
        (chat, json!({ "tools": tool(json!({ "name": "f" })), "tool_choice": "f" }), "tool_choice"),
        (
            chat,
            json!({ "tools": tool(json!({ "name": "f" })), "tool_choice": "required", "response_format": { "type": "json_object" } }),
            "response_format",
        ),
        (chat, json!({ "response_format": { "type": "xml" } }), "response_format.type"),
        (chat, json!({ "response_format": { "type": "json_schema" } }), "response_format.json_schema"),
        (chat, json!({ "response_format": { "type": "json_object" }, "regex": "a" }), "regex"),
        (chat, json!({ "chat_template_kwargs": many }), "chat_template_kwargs"),
    ];
    for (ask, more, field) in cases {
        let refusal = ask(&more).err().unwrap_or_else(|| panic!("{more} passed"));
        assert_eq!(refusal.param.as_deref(), Some(field), "{more}: {}", refusal.message);
    }
    for nothing in [json!(null), json!(5), json!([])] {
        assert!(read(Shape::Chat, &nothing).err().unwrap().message.contains("must be an object"));
    }
    assert_eq!(read(Shape::Text, &json!({})).err().unwrap().param.as_deref(), Some("prompt"));
    for more in [
        json!({ "input": 5 }),
        json!({ "encoding_format": "int8" }),
        json!({ "dimensions": 0 }),
        json!({ "prompt": "a" }),
    ] {
        assert!(embedding(&more).is_err(), "{more}");
    }
    assert!(embedding(&json!({ "input": vec!["a"; 2049] })).is_err());
}

#[test]
fn a_prompt_is_a_text_or_tokens_or_several_of_either() {
    let prompts = |prompt: Value| text(&json!({ "prompt": prompt })).unwrap().prompts;
    for nothing in [json!(""), json!(null)] {
        assert_eq!(prompts(nothing), [Prompt::Text(String::new())]);
    }
    assert_eq!(prompts(json!(["a"])), [Prompt::Text("a".into())]);
    assert_eq!(prompts(json!(["a", "b"])), ["a", "b"].map(|text| Prompt::Text(text.into())));
    for tokens in [json!([1, 2]), json!([[1, 2]])] {
        assert_eq!(prompts(tokens), [Prompt::Tokens(vec![1, 2])]);
    }
}

#[test]
fn parts_of_text_are_one_text_and_calls_may_have_no_content() {
    let parts =
        json!([{ "type": "text", "text": "h" }, { "type": "text", "text": "i", "prompt_cache_breakpoint": {} }]);
    let messages =
        |content: Value| chat(&json!({ "messages": [{ "role": "user", "content": content }] })).unwrap().prompts;
    assert_eq!(messages(parts), messages(json!("hi")));
    for more in [json!({}), json!({ "content": null, "refusal": null, "tool_calls": [], "annotations": [] })] {
        let answer = with(json!({ "role": "assistant" }), &more);
        assert!(chat(&json!({ "messages": [{ "role": "user", "content": "hi" }, answer] })).is_ok());
    }
}

#[test]
fn seeds_are_those_of_the_request_or_random_ones() {
    let seed = |seed: Value| text(&json!({ "seed": seed })).unwrap().seed(1, 2);
    let seeds = [json!(null), json!(-1), json!(7), json!(5.0), json!(-5), json!(u64::MAX)].map(seed);
    assert_eq!(seeds, [1, 2, 7, 5, u64::MAX - 4, u64::MAX]);
    let drawn = text(&json!({ "temperature": 0.5, "top_k": 1000, "top_p": 0 })).unwrap().answer(9);
    let Sampling::Random { top_k, top_p, seed, .. } = drawn.sampling else { panic!("{drawn:?}") };
    assert!(top_k == 0 && top_p > 0.0 && top_p < 1e-6 && seed == 9);
}

#[test]
fn tools_and_variables_are_the_conversations() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "strict": true } }]);
    let asked = |more: &Value| chat(&with(json!({ "tools": tools }), more)).unwrap().chat;
    // Without `strict`, models see what they see where it is left out.
    assert_eq!(asked(&json!({})).tools[0]["function"], json!({ "name": "f" }));
    let choices =
        [json!("auto"), json!("none"), json!("required"), json!({ "type": "function", "function": { "name": "f" } })];
    let found = choices.map(|choice| asked(&json!({ "tool_choice": choice })).tool_choice);
    assert_eq!(found, [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Named("f".into())]);
    assert_eq!(asked(&json!({ "parallel_tool_calls": false })).one_call, Some(true));
    let told = asked(&json!({ "reasoning_effort": "low", "chat_template_kwargs": { "enable_thinking": false } }));
    assert_eq!(json!(told.variables), json!({ "enable_thinking": false, "reasoning_effort": "low" }));
}

#[test]
fn formats_have_many_names() {
    let schema = json!({ "type": "object" });
    let found = |more: Value| text(&more).unwrap().format.map(|asked| (asked.field, asked.format));
    let is_schema = |field| Some((field, Format::Schema(schema.clone())));
    let named = json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": schema } });
    assert_eq!(found(json!({ "response_format": named })), is_schema("response_format"));
    assert_eq!(found(json!({ "guided_json": schema.to_string() })), is_schema("guided_json"));
    assert_eq!(found(json!({ "structured_outputs": { "json": schema } })), is_schema("structured_outputs.json"));
    assert_eq!(
        found(json!({ "guided_choice": ["a.b", "c"] })),
        Some(("guided_choice", Format::Regex(r"a\.b|c".into())))
    );
    assert_eq!(found(json!({ "response_format": { "type": "text" } })), None);
}

#[test]
fn what_has_no_effect_is_noted_or_refused() {
    let request = json!({ "prompt": "a", "colour": "red", "metadata": {} });
    let notes = Notes::new(false);
    TextRequest::read(Shape::Text, &request, &notes).unwrap();
    assert_eq!(notes.into_noted(), ["colour is not known, and changes nothing"]);
    assert_eq!(text(&json!({ "colour": "red" })).err().unwrap().code, Some("unknown_parameter"));
}

/// The page of the documentation that lists all fields.
fn page() -> String {
    let mut page = String::from(
        "# Fields of requests\n\nEach field of OpenAI's API, and what others' servers add to it, as `anygpu serve` and the npm \
         package read them. Null is the same as leaving a field out. `UPDATE=1 cargo test -p anygpu-openai` writes this page.\n",
    );
    for (name, table) in FIELDS {
        page += &format!("\n## In {name}\n\n| field | values |\n|---|---|\n");
        rows(&mut page, "", table);
    }
    page
}

fn rows(page: &mut String, path: &str, table: Table) {
    for (field, rule) in table {
        let listed = |neutral: &[&str]| neutral.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
        let values = match rule {
            Rule::Use(kind) => kind.expected(),
            Rule::Only([], why) => format!("not supported: {why}"),
            Rule::Only(neutral, why) => format!("only {}: {why}", listed(neutral)),
            Rule::Noted(neutral, why) => format!("{}; any other {why}, and changes nothing", listed(neutral)),
            Rule::Ignored => "any; changes nothing".into(),
        };
        *page += &format!("| `{path}{field}` | {} |\n", values.replace('|', "\\|"));
        if let Rule::Use(Kind::Object(table)) = rule {
            rows(page, &format!("{path}{field}."), table);
        }
    }
}

/// The fields as constants for TypeScript, whose compiler compares them with OpenAI's types and with the package's: true for
/// those that have an effect.
fn types() -> String {
    let tables = FIELDS.iter().map(|(_, table)| *table).collect::<Vec<_>>();
    let [common, chat, text, embedding, _, message] = tables[..] else { panic!("other tables") };
    let mut file = String::from("// Written by `UPDATE=1 cargo test -p anygpu-openai`.\n");
    for (name, tables) in
        [("CHAT", &[common, chat][..]), ("TEXT", &[common, text]), ("EMBEDDING", &[embedding]), ("MESSAGE", &[message])]
    {
        let fields: String = tables
            .iter()
            .copied()
            .flatten()
            .map(|(field, rule)| format!("  {field}: {},\n", matches!(rule, Rule::Use(_))))
            .collect();
        file += &format!("export const {name} = {{\n{fields}}} as const;\n");
    }
    file
}

#[test]
fn the_documentation_and_the_types_have_every_field() {
    for (path, text) in [("docs/fields.md", page()), ("js/test/types/fields.ts", types())] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), text, "UPDATE=1 cargo test -p anygpu-openai writes it");
    }
}
