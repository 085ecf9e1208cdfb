//! Tests of answers in each family's markup, in pieces of every size.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::template;
use super::{ChatError, ChatOptions, Message, Part, ToolChoice};

/// Minimal templates with the markers of each family's real one.
const TAGS: &str = "{{ tools | tojson }}<tool_call><function=NAME></tool_call></think>";
const HERMES: &str = "{{ tools | tojson }}<tool_call>{}</tool_call><think></think>";
const MISTRAL: &str = "{{ tools | tojson }}[TOOL_CALLS][THINK][/THINK]";
const GRANITE: &str = "{{ tools | tojson }}answer with <|tool_call|>";
const LFM2: &str = "<|tool_list_start|>{{ tools | tojson }}<|tool_list_end|>";
const LLAMA: &str = "<|start_header_id|>{{ tools | tojson }}answer with \"name\" and \"parameters\"";
const GEMMA: &str = "<|tool>{{ tools | tojson }}<tool|><|channel>thought<channel|><|tool_call>call:NAME{}<tool_call|>";
const WRAPPED: &str = "{{ tools | tojson }}<tool_call><think></think><response></response>";
const SEED: &str = "<seed:think></seed:think>";
const HARMONY: &str = "{{ tools | tojson }}<|channel|>{{ x }}<|message|>";

fn tools() -> Vec<Value> {
    let kinds =
        json!({ "city": { "type": "string" }, "days": { "type": "integer" }, "on": { "type": ["string", "null"] } });
    let parameters = json!({ "type": "object", "properties": kinds });
    ["weather", "time"]
        .map(|name| json!({ "type": "function", "function": { "name": name, "parameters": parameters } }))
        .to_vec()
}

/// Parses a text in pieces of `size` characters; returns its thoughts, text and calls.
fn told(source: &str, options: &ChatOptions, prompt: &str, text: &str, size: usize) -> (String, String, Vec<String>) {
    let mut parts = template(source).unwrap().with(options).unwrap().parts(prompt);
    let (mut thought, mut said, mut calls) = (String::new(), String::new(), Vec::new());
    let mut take = |told: Vec<Part>| {
        for part in told {
            match part {
                Part::Thought(text) => thought += &text,
                Part::Said(text) => said += &text,
                Part::Call(call) => calls.push(format!("{}({}", call.name, call.arguments)),
                Part::Arguments(more) => *calls.last_mut().unwrap() += &more,
            }
        }
    };
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size).for_each(|piece| take(parts.push(&piece.iter().collect::<String>())));
    take(parts.finish());
    calls.iter_mut().for_each(|call| call.push(')'));
    (thought, said, calls)
}

#[track_caller]
fn are(source: &str, cases: &[(&str, &str, &str, &[&str])]) {
    let options = ChatOptions { tools: tools(), ..ChatOptions::default() };
    for (text, thought, said, calls) in cases {
        for size in 1..=text.chars().count().max(1) {
            let expected = ((*thought).into(), (*said).into(), calls.iter().map(|&call| call.into()).collect());
            assert_eq!(told(source, &options, "", text, size), expected, "{text:?} by {size}");
        }
    }
}

const PARIS: &str = r#"weather({"city":"Paris"})"#;

#[test]
fn hermes() {
    let call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>";
    let two = format!("<think>\nhm\n</think>\n\nI look. \n{call}\n{{\n{call}\n");
    let quoted = "<tool_call>{\"name\": \"time\", \"arguments\": {\"a\": \"\\\"</tool_call>\"}}</tool_call>";
    are(
        HERMES,
        &[
            (call, "", "", &[PARIS]),
            (&format!("{call}\n{call}"), "", "", &[PARIS, PARIS]),
            (&two, "hm", "I look.\n{", &[PARIS, PARIS]),
            (quoted, "", "", &[r#"time({"a":"\"</tool_call>"})"#]),
            ("<tool_call>{\"name\": \"time\"}</tool_call>", "", "", &["time({})"]),
            // Only the end mark is missing.
            ("<tool_call>{\"name\": \"time\", \"arguments\": {}}", "", "", &["time({})"]),
            // None of these is a call.
            ("<tool_call>{\"name\": \"time\"", "", "<tool_call>{\"name\": \"time\"", &[]),
            ("<tool_call>{\"name\": \"no\"}</tool_call> So.", "", "<tool_call>{\"name\": \"no\"}</tool_call> So.", &[]),
            (&format!("<tool_call>?</tool_call>{call}"), "", "<tool_call>?</tool_call>", &[PARIS]),
            ("<tool_call>[1]</tool_call>", "", "<tool_call>[1]</tool_call>", &[]),
            ("<tool_call>", "", "<tool_call>", &[]),
            ("So \n<tool_call> {}", "", "So \n<tool_call> {}", &[]),
            ("a <tool_ca", "", "a <tool_ca", &[]),
            ("a <b> c\n\n", "", "a <b> c\n\n", &[]),
            ("<think>a <tool_call>", "a <tool_call>", "", &[]),
        ],
    );
}

#[test]
fn tags() {
    let call = "<tool_call>\n<function=weather>\n<parameter=city>\n12 \"a\"\nb\n</parameter>\n<parameter=days>\n3\n\
                </parameter>\n<parameter=other>\n[1, {}]\n</parameter>\n<parameter=on>null</parameter>\n</function>\n\
                </tool_call>";
    let read = r#"weather({"city":"12 \"a\"\nb","days":3,"other":[1,{}],"on":"null"})"#;
    are(
        TAGS,
        &[
            (call, "", "", &[read]),
            ("<tool_call><function=time>\n</function></tool_call>", "", "", &["time({})"]),
            (
                "<tool_call><function=time><parameter=a></function></tool_call>",
                "",
                "<tool_call><function=time><parameter=a></function></tool_call>",
                &[],
            ),
        ],
    );
}

#[test]
fn mistral() {
    let list =
        r#"[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Paris"}, "id": "123456789"}, {"name": "time"}]"#;
    let named = r#"[THINK]hm[/THINK]Well.[TOOL_CALLS]weather[ARGS]{"city": "Paris"}[TOOL_CALLS]time[CALL_ID]1[ARGS]{}"#;
    are(
        MISTRAL,
        &[
            (list, "", "", &[PARIS, "time({})"]),
            (&list.replace("S][", "S] ["), "", "", &[PARIS, "time({})"]),
            (named, "hm", "Well.", &[PARIS, "time({})"]),
            ("[TOOL_CALLS]no[ARGS]{} [", "", "[TOOL_CALLS]no[ARGS]{} [", &[]),
            ("[TOOL_CALLS]weather(1)", "", "[TOOL_CALLS]weather(1)", &[]),
            ("[TOOL", "", "[TOOL", &[]),
            (
                &format!("[TOOL_CALLS]{}{{}}", "\u{e4}".repeat(200)),
                "",
                &format!("[TOOL_CALLS]{}{{}}", "\u{e4}".repeat(200)),
                &[],
            ),
        ],
    );
}

#[test]
fn granite_and_phi() {
    let list = r#"<|tool_call|>[{"name": "weather", "arguments": "{\"city\":\"Paris\"}"}]"#;
    are(
        GRANITE,
        &[
            (list, "", "", &[PARIS]),
            (&format!("{list}<|/tool_call|>"), "", "", &[PARIS]),
            ("<|tool_call|>[]", "", "<|tool_call|>[]", &[]),
            (
                r#"<|tool_call|>[{"name": "time", "arguments": "x"}]"#,
                "",
                r#"<|tool_call|>[{"name": "time", "arguments": "x"}]"#,
                &[],
            ),
        ],
    );
}

#[test]
fn lfm2() {
    let literals = r#"<|tool_call_start|>[weather(city='Pa"ris\'\n', days=-3,), time(a=[1.5, {"k": None}], b=True)]<|tool_call_end|>"#;
    let newer = LFM2.replace("tool_list_start", "tool_call_start");
    are(&newer, &[("<|tool_call_start|>[time()]<|tool_call_end|>", "", "", &["time({})"])]);
    let deep = format!("<|tool_call_start|>[time(a={}1", "[".repeat(99));
    are(
        LFM2,
        &[
            (
                &format!("Well. {literals}"),
                "",
                "Well.",
                &[r#"weather({"city":"Pa\"ris'\n","days":-3})"#, r#"time({"a":[1.5,{"k":null}],"b":true})"#],
            ),
            (r#"<|tool_call_start|>[{"name": "time", "arguments": {}}]<|tool_call_end|>"#, "", "", &["time({})"]),
            (
                "<|tool_call_start|>[time(a=b)]<|tool_call_end|>",
                "",
                "<|tool_call_start|>[time(a=b)]<|tool_call_end|>",
                &[],
            ),
            ("<|tool_call_start|>[time(", "", "<|tool_call_start|>[time(", &[]),
            (&deep, "", &deep, &[]),
        ],
    );
}

#[test]
fn gemma() {
    let call =
        "<|tool_call>call:weather{city:<|\"|>Pa\"r}is<|\"|>,days:-3,all:[true,{<|\"|>k<|\"|>:null,b:1.5}]}<tool_call|>";
    let read = r#"weather({"city":"Pa\"r}is","days":-3,"all":[true,{"k":null,"b":1.5}]})"#;
    let thought = "<|channel>thought\nhm <b>\n<channel|>";
    are(
        GEMMA,
        &[
            (call, "", "", &[read]),
            (&format!("{thought}{call}{call}"), "hm <b>", "", &[read, read]),
            (&format!("{thought}\nYes.\n{call}"), "hm <b>", "Yes.", &[read]),
            ("<|tool_call>call:time{}<tool_call|>", "", "", &["time({})"]),
            ("<|tool_call>call:time{}", "", "", &["time({})"]),
            (
                "<|tool_call>call:time{n:123456789012345678901234567890}<tool_call|>",
                "",
                "",
                &["time({\"n\":123456789012345678901234567890})"],
            ),
            ("<|tool_call>call:no{}<tool_call|>", "", "<|tool_call>call:no{}<tool_call|>", &[]),
            ("<|tool_call>call:time{a:b}<tool_call|>", "", "<|tool_call>call:time{a:b}<tool_call|>", &[]),
            ("<|tool_call>call:time", "", "<|tool_call>call:time", &[]),
        ],
    );
}

/// Calls are returned as soon as they are unambiguous, and arguments while they are written.
#[test]
fn arguments_are_told_as_they_come() {
    let number = "123456789012345678901234567890";
    let call = format!("{{\"name\": \"time\", \"arguments\": {{\"n\": {number}, \"e\": \"\\u00e4 \n}}\"}}}}");
    let read = format!("time({{\"n\":{number},\"e\":\"\\u00e4 \\n}}\"}})");
    let other = format!("{{\"id\": \"1\", \"arguments\": {{\"n\": {number}}}, \"name\": \"time\"}}");
    let of_other = format!("time({{\"n\":{number}}})");
    let wrapped = format!("{{\"type\": \"function\", \"function\": {other}}}");
    are(
        HERMES,
        &[
            (&format!("<tool_call>{call}</tool_call>"), "", "", &[&read]),
            (&format!("<tool_call>{other}</tool_call>"), "", "", &[&of_other]),
            (&format!("<tool_call>{wrapped}</tool_call>"), "", "", &[&of_other]),
            // The answer is cut off within the arguments, or after them.
            ("<tool_call>{\"name\": \"time\", \"arguments\": {\"a\": \"b", "", "", &["time({\"a\":\"b)"]),
            ("<tool_call>{\"name\": \"time\", \"arguments\": {}", "", "", &["time({})"]),
            ("<tool_call>{\"name\": \"time\", \"arguments\": {}, \"id\": 1} </tool", "", "", &["time({})"]),
            // The end mark is missing, and text follows.
            ("<tool_call>{\"name\": \"time\", \"arguments\": {}}\nSo.", "", "\nSo.", &["time({})"]),
        ],
    );
    are(
        MISTRAL,
        &[
            (&format!("[TOOL_CALLS][{call}, {other}, {call}]"), "", "", &[&read, &of_other, &read]),
            (
                &format!("[TOOL_CALLS][{call}, {{\"name\": \"no\", \"arguments\": {{}}}}]So."),
                "",
                " {\"name\": \"no\", \"arguments\": {}}So.",
                &[&read],
            ),
        ],
    );
    let pieces =
        ["<tool_call>{\"name\": \"time\", \"arguments\": {", "\"a\": ", "\"b", "c\"", "}", "}", "</tool_call>"];
    let options = ChatOptions { tools: tools(), ..ChatOptions::default() };
    let mut parts = template(HERMES).unwrap().with(&options).unwrap().parts("");
    let told: Vec<usize> = pieces.iter().map(|piece| parts.push(piece).len()).collect();
    assert_eq!(told, [2, 1, 1, 1, 1, 0, 0]);
}

#[test]
fn of_an_answer_that_is_held_to_calls_nothing_is_said() {
    let options = ChatOptions { tools: tools(), tool_choice: ToolChoice::Required, ..ChatOptions::default() };
    for text in ["<tool_ca", "<tool_call>\n{\"name\": \"wea", "<tool_call>\n{\"name\": \"time\", \"argu"] {
        assert_eq!(told(HERMES, &options, "", text, 3), (String::new(), String::new(), Vec::new()), "{text}");
    }
    let call = "<tool_call>{\"name\": \"time\", \"arguments\": {}}</tool_call>";
    assert_eq!(told(HERMES, &options, "", &call.repeat(2), 9).2, ["time({})"], "one, unless it says otherwise");
    let several = ChatOptions { one_call: Some(false), ..options };
    assert_eq!(told(HERMES, &several, "", &call.repeat(2), 9).2, ["time({})", "time({})"]);
}

#[test]
fn llama() {
    let call = r#"{"name": "weather", "parameters": {"city": "Paris"}}"#;
    let typed = r#" { "type": "function", "name": "time", "parameters": null }"#;
    let answer = r#"{"name": "Bob", "parameters": 1} is JSON."#;
    are(
        LLAMA,
        &[
            (call, "", "", &[PARIS]),
            (&format!("{call}; {call}\n{typed}"), "", "", &[PARIS, PARIS, "time({})"]),
            (&format!("<|python_tag|>{call}"), "", "", &[PARIS]),
            (&format!("So: {call}"), "", &format!("So: {call}"), &[]),
            (answer, "", answer, &[]),
            ("{\"na", "", "{\"na", &[]),
            ("{ \"key\": 1}", "", "{ \"key\": 1}", &[]),
            ("<|python_tag|>search.call(q=\"x\")", "", "<|python_tag|>search.call(q=\"x\")", &[]),
            (&call[..30], "", &call[..30], &[]),
        ],
    );
}

#[test]
fn harmony() {
    let call = "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Paris\"}";
    let thought = "<|channel|>analysis<|message|>hm < a<|end|>";
    are(
        HARMONY,
        &[
            (&format!("{thought}<|start|>assistant<|channel|>final<|message|>Yes <b>."), "hm < a", "Yes <b>.", &[]),
            (&format!("{thought}{call}"), "hm < a", "", &[PARIS]),
            (
                &format!("<|channel|>commentary<|message|>I look.<|end|>{call}<|end|>{call}"),
                "",
                "I look.",
                &[PARIS, PARIS],
            ),
            (" to=functions.time<|channel|>commentary json<|message|>{}", "", "", &["time({})"]),
            (" to=functions.time<|channel|>commentary json<|message|>{\"a", "", "", &["time({\"a)"]),
            (" to=functions.time<|channel|>commentary json<|message|> {\"a\": 1}<|end|>", "", "", &["time({\"a\":1})"]),
            (" to=functions.time<|channel|>commentary<|message|>no", "", "no", &[]),
            (" to=functions.no<|channel|>commentary<|message|>{}", "", "{}", &[]),
            ("<|channel|>analysis", "", "", &[]),
            ("Yes.", "", "Yes.", &[]),
        ],
    );
}

#[test]
fn thoughts_are_told_from_answers() {
    let options = ChatOptions::default();
    let prompt = "<|im_start|>assistant\n";
    let cases = [
        (HERMES, prompt, "<think>\nhm <b>\n</think>\n\nYes.", "hm <b>", "Yes."),
        (HERMES, prompt, " \n<think></think>Yes.", "", "Yes."),
        (HERMES, prompt, "Yes <think> no </think>.", "", "Yes <think> no </think>."),
        (HERMES, prompt, "<thin", "", "<thin"),
        (HERMES, prompt, "<think>hm </thi", "hm </thi", ""),
        (HERMES, prompt, "<think>a\n\nb</think>\n", "a\n\nb", ""),
        (HERMES, prompt, "<think> \n", "", ""),
        (HERMES, prompt, "  so", "", "  so"),
        (HERMES, "assistant\n<think>\n", "hm</think>\nYes.", "hm", "Yes."),
        (HERMES, "assistant\n<think>\n\n</think>\n\n", "Yes.", "", "Yes."),
        (HERMES, prompt, "", "", ""),
        (GEMMA, "model\n", "<|channel>thought\nhm\n<channel|>Yes.", "hm", "Yes."),
        (GEMMA, "model\n", "<|channel>thought\n<channel|>Yes.", "", "Yes."),
        (GEMMA, "model\n<|channel>thought\n", "hm<channel|>Yes.", "hm", "Yes."),
        (GEMMA, "model\n<|channel>thought\n<channel|>", "Yes.", "", "Yes."),
        (GEMMA, "model\n", "So. <|channel>thought\nhm<channel|>Yes.", "hm", "So. Yes."),
        (SEED, prompt, "<seed:think>hm</seed:think>Yes.", "hm", "Yes."),
        (WRAPPED, prompt, "<think>hm</think>\n<response> Yes </b>. </response>\n", "hm", "Yes </b>."),
        (WRAPPED, prompt, "<response>Yes.", "", "Yes."),
        (WRAPPED, prompt, "<think>hm</think>Yes <response>.", "hm", "Yes <response>."),
        (WRAPPED, prompt, "<think>hm</think> <respo", "hm", "<respo"),
        // There are no calls without tools, and no thoughts if the template has no marks for them.
        (
            HERMES,
            prompt,
            "<tool_call>{\"name\": \"time\"}</tool_call>",
            "",
            "<tool_call>{\"name\": \"time\"}</tool_call>",
        ),
        (LLAMA, prompt, "<think>hm</think>{\"name\"", "", "<think>hm</think>{\"name\""),
    ];
    for (source, prompt, text, thought, said) in cases {
        for size in 1..=text.len().max(1) {
            let expected = (thought.into(), said.into(), Vec::new());
            assert_eq!(told(source, &options, prompt, text, size), expected, "{text:?} by {size}");
        }
    }
}

#[test]
fn one_call_may_be_all_that_is_wanted() {
    let options = ChatOptions { tools: tools(), one_call: Some(true), ..ChatOptions::default() };
    let list = r#"[TOOL_CALLS][{"name": "time"}, {"name": "weather"}][TOOL_CALLS][{"name": "time"}]"#;
    assert_eq!(told(MISTRAL, &options, "", list, 5).2, ["time({})"]);
    let call = " to=functions.time<|message|>{}<|end|>";
    assert_eq!(told(HARMONY, &options, "", &call.repeat(2), 5).2, ["time({})"]);
}

#[test]
fn what_a_template_cannot_do_is_refused() {
    let refused = |source: &str, options: ChatOptions| template(source).unwrap().with(&options).unwrap_err();
    let options = ChatOptions { tools: tools(), ..ChatOptions::default() };
    assert!(matches!(refused("{{ raise_exception('no') }}", options.clone()), ChatError::Render(_)));
    // These prescribe a call syntax without a `CallForm`.
    let demanded = ChatOptions { tool_choice: ToolChoice::Required, ..options.clone() };
    for source in [TAGS, LFM2, HARMONY, GEMMA] {
        let form = template(source).unwrap().call_form(&[Message::new("user", "?")], &demanded);
        assert_eq!(form.unwrap_err(), ChatError::Demanded, "{source}");
    }
    let given = |name: &str| ChatOptions { variables: [(name.into(), json!(false))].into(), ..ChatOptions::default() };
    let source = "{{ enable_thinking }}{{ messages }}";
    for name in ["thinking", "messages", "", "\n"] {
        assert!(matches!(refused(source, given(name)), ChatError::Variable(_)), "{name}");
    }
    let with = template(source).unwrap().with(&given("enable_thinking")).unwrap();
    assert!(with.render(&[], true).unwrap().starts_with("False"));
    // If the model is not told of tools, the template needs no place for them.
    let none = ChatOptions { tool_choice: ToolChoice::None, ..options };
    let plain = template("{{ messages[0].content }}{{ tools or '' }}").unwrap().with(&none).unwrap();
    assert_eq!(plain.render(&[Message::new("user", "U")], true).unwrap(), "U");
}

#[test]
fn what_an_answer_must_be_follows_from_what_is_demanded() {
    let form = |tool_choice| {
        let options = ChatOptions { tools: tools(), tool_choice, ..ChatOptions::default() };
        template(HERMES).unwrap().call_form(&[Message::new("user", "?")], &options)
    };
    assert_eq!((form(ToolChoice::Auto).unwrap(), form(ToolChoice::None).unwrap()), (None, None));
    let any = form(ToolChoice::Required).unwrap().unwrap();
    assert_eq!((any.functions.len(), any.between.as_deref(), any.thinking), (tools().len(), None, false));
    let several = ChatOptions {
        tools: tools(),
        tool_choice: ToolChoice::Required,
        one_call: Some(false),
        ..ChatOptions::default()
    };
    let several = template(HERMES).unwrap().call_form(&[Message::new("user", "?")], &several).unwrap().unwrap();
    assert_eq!(several.between.as_deref(), Some("\n"));
    assert_eq!(any.thoughts, Some(("<think>".into(), "</think>".into())));
    let named = form(ToolChoice::Named("time".into())).unwrap().unwrap();
    let names: Vec<_> = named.functions.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, named.between), (vec!["time"], None));
    assert_eq!(form(ToolChoice::Named("no".into())).unwrap_err(), ChatError::NothingToCall);
}

#[test]
fn what_may_stand_before_an_answer_follows_from_the_template() {
    let preface = |source: &str| {
        template(source).unwrap().preface(&[Message::new("user", "?")], &ChatOptions::default()).unwrap()
    };
    assert_eq!(preface("{{ messages }}"), None);
    let thinks = preface("{{ messages }}<think></think>").unwrap();
    assert_eq!((thinks.thoughts, thinks.thinking), (Some(("<think>".into(), "</think>".into())), false));
    assert!(preface("{{ messages[0].content }}<think>\n").unwrap().thinking);
    assert!(!preface("{{ messages[0].content }}<think>\n\n</think>\n\n").unwrap().thinking);
    let begins = template("{{ messages[0].content }}{{ enable_thinking }}<think>\n").unwrap();
    for (variables, ends) in [(json!({}), true), (json!({ "enable_thinking": true }), false)] {
        let variables = variables.as_object().unwrap().clone().into_iter().collect();
        let held = ChatOptions { held: true, variables, ..ChatOptions::default() };
        let messages = [Message::new("user", "?")];
        let prompt = begins.with(&held).unwrap().render(&messages, true).unwrap();
        assert_eq!(prompt.ends_with("<think>\n\n</think>\n\n"), ends, "{prompt:?}");
        assert_eq!(begins.preface(&messages, &held).unwrap().unwrap().thinking, !ends);
    }
    assert_eq!(preface("{{ messages }}<|channel|><|message|>").unwrap().header, "<|channel|>final<|message|>");
    assert_eq!(preface("{{ messages }}<|channel>thought<channel|>").unwrap().marks, ["<|channel>", "<channel|>"]);
}

/// Fragments of answers, and texts that resemble them.
const FRAGMENTS: [&str; 36] = [
    "<|tool_call>call:time{",
    "<|\"|>",
    "<tool_call|>",
    "<|channel>thought",
    "<channel|>",
    "<response>",
    "<tool_call>",
    "</tool_call>",
    "<function=time>",
    "</function>",
    "<parameter=city>",
    "</parameter>",
    "[TOOL_CALLS]",
    "time",
    "[ARGS]",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "[time(city=",
    ")]",
    "<|python_tag|>",
    "{\"name\": \"time\"",
    ", \"arguments\": {",
    "}",
    "]",
    "\"",
    "\\",
    "'",
    ";",
    " \n",
    "<think>",
    "</think>",
    "<|channel|>analysis",
    "<|message|>",
    "<|end|>",
    " to=functions.time \u{1f999}<",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Random sequences of fragments do not panic, and give the same parts however they are cut.
    #[test]
    fn pieces_make_no_difference(parts in prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..14), size in 1..9usize) {
        let text = parts.concat();
        let options = ChatOptions { tools: tools(), ..ChatOptions::default() };
        for source in [TAGS, HERMES, MISTRAL, GRANITE, LFM2, LLAMA, HARMONY, GEMMA, WRAPPED] {
            let whole = told(source, &options, "", &text, usize::MAX);
            prop_assert_eq!(&told(source, &options, "", &text, size), &whole);
            prop_assert_eq!(&told(source, &options, "", &text, 1), &whole);
        }
    }
}

#[test]
fn models_are_told_of_tools_that_their_templates_do_not_show() {
    // No place for tools; tools are mentioned, and nothing is done with them; calls are written in an unknown way.
    let plain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    let user_only = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    let mentioned = format!("{{% if tools %}}{{% endif %}}{plain}");
    let unknown = format!("{{% if tools %}}{{{{ tools }}}}{{% endif %}}{plain}");
    let options = ChatOptions { tools: tools(), ..ChatOptions::default() };
    let call = json!([{ "type": "function", "function": { "name": "time", "arguments": { "zone": "x" } } }]);
    let turns = [
        Message::new("user", "What time is it?"),
        Message::new("assistant", "").with("tool_calls", call),
        Message::new("tool", "It is nine."),
    ];
    for (source, system) in [(plain, true), (user_only, false), (&mentioned, true), (&unknown, true)] {
        let chat = template(source).unwrap().with(&options).unwrap();
        let text = chat.render(&turns, true).unwrap();
        assert!(text.starts_with(if system { "[system]You can call" } else { "[user]You can call" }), "{text}");
        let written = "[assistant]<tool_call>\n{\"name\":\"time\",\"arguments\":{\"zone\":\"x\"}}\n</tool_call>";
        for part in ["\"name\":\"time\"", "What time is it?", written, "[user]<tool_response>\nIt is nine."] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("[tool]") && text.matches("You can call").count() == 1, "{text}");
        let (_, said, calls) = told(
            source,
            &options,
            "",
            "Let me see.\n<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>",
            3,
        );
        assert_eq!((&*said, &calls[..]), ("Let me see.", &["time({})".to_owned()][..]));
        // A required call has a form.
        let demanded = ChatOptions { tool_choice: ToolChoice::Required, ..options.clone() };
        assert!(template(source).unwrap().call_form(&turns, &demanded).unwrap().is_some());
    }
    // The instructions join a system message.
    let chat = template(plain).unwrap().with(&options).unwrap();
    let text = chat.render(&[Message::new("system", "Be brief."), Message::new("user", "U")], true).unwrap();
    assert!(text.starts_with("[system]Be brief.\n\nYou can call") && text.ends_with("[user]U"), "{text}");
}
