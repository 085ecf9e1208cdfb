//! Renderings in the formats of the model families, by small templates that use the same constructs.

use std::sync::Arc;

use super::*;
use crate::gguf;

pub(super) fn template(source: &str) -> Result<ChatTemplate, ChatError> {
    let mut m = Metadata::default();
    m.insert("tokenizer.chat_template", gguf::Value::String(source.into()));
    m.insert("tokenizer.ggml.tokens", gguf::Value::Strings(Arc::new(["<bos>", "<eos>"].into_iter().collect())));
    m.insert("tokenizer.ggml.bos_token_id", gguf::Value::Uint(0));
    m.insert("tokenizer.ggml.eos_token_id", gguf::Value::Uint(1));
    ChatTemplate::from_metadata(&m)
}

/// A file may leave out the ids that its tokenizer's algorithm has from the first.
#[test]
fn marks_of_a_text_are_those_of_the_tokenizer() {
    let tokens = ["<unk>", "<s>", "</s>"];
    let rendered = |model: Option<&str>| {
        let mut m = Metadata::default();
        m.insert("tokenizer.chat_template", gguf::Value::String("{{ bos_token }}|{{ eos_token }}".into()));
        m.insert("tokenizer.ggml.tokens", gguf::Value::Strings(Arc::new(tokens.into_iter().collect())));
        if let Some(model) = model {
            m.insert("tokenizer.ggml.model", gguf::Value::String(model.into()));
        }
        ChatTemplate::from_metadata(&m).unwrap().render(&[], false).unwrap()
    };
    assert_eq!(rendered(Some("llama")), "<s>|</s>");
    assert_eq!((rendered(Some("gpt2")), rendered(Some("other")), rendered(None)), ("|".into(), "|".into(), "|".into()));
}

fn system_user() -> [Message; 2] {
    [Message::new("system", "S"), Message::new("user", "U")]
}

#[track_caller]
fn renders(source: &str, expected: &str) {
    assert_eq!(template(source).unwrap().render(&system_user(), true).unwrap(), expected);
}

#[test]
fn chatml_is_the_fallback() {
    let chat = ChatTemplate::from_metadata(&Metadata::default()).unwrap();
    let text = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n";
    assert_eq!(chat.render(&system_user(), true).unwrap(), format!("{text}<|im_start|>assistant\n"));
    assert_eq!(chat.render(&system_user(), false).unwrap(), text);
}

#[test]
fn harmony_with_a_macro_and_an_effort() {
    let source = "{%- macro about(effort) -%}
    {{- \"Today: \" + strftime_now(\"%Y-%m-%d\") + \"\\n\" }}
    {{- \"Effort: \" + effort + \"\\n\" }}
    {%- for name in [\"analysis\", \"final\"] -%}
        {{- name }}{{ \", \" if not loop.last else \".\" }}
    {%- endfor -%}
{%- endmacro -%}
{%- if reasoning_effort is not defined %}
    {%- set reasoning_effort = \"medium\" %}
{%- endif %}
{{- \"<|start|>system<|message|>\" + about(reasoning_effort) + \"<|end|>\" }}
{%- set seen = namespace(users=0) %}
{%- for message in messages %}
    {%- if message.role in [\"developer\", \"system\"] %}
        {{- \"<|start|>developer<|message|># Instructions\\n\\n\" ~ message.content ~ \"<|end|>\" }}
    {%- elif message.role == \"user\" %}
        {%- set seen.users = seen.users + 1 %}
        {{- \"<|start|>user<|message|>\" + message.content + \"<|end|>\" }}
    {%- else %}
        {{- raise_exception(\"no role \" ~ message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt and seen.users > 0 -%}
<|start|>assistant
{%- endif -%}";
    let expected = |effort: &str| {
        format!(
            "<|start|>system<|message|>Today: 2026-07-26\nEffort: {effort}\nanalysis, final.<|end|>\
             <|start|>developer<|message|># Instructions\n\nS<|end|><|start|>user<|message|>U<|end|><|start|>assistant"
        )
    };
    let mut chat = template(source).unwrap();
    chat.set_now(1_785_024_000);
    assert_eq!(chat.render(&system_user(), true).unwrap(), expected("medium"));
    chat.set_variable("reasoning_effort", &"high".into());
    assert_eq!(chat.render(&system_user(), true).unwrap(), expected("high"));
}

#[test]
fn llama3_with_the_date() {
    let source = "{{- bos_token }}
{%- if strftime_now is defined %}
    {%- set today = strftime_now(\"%d %b %Y\") %}
{%- else %}
    {%- set today = \"26 Jul 2024\" %}
{%- endif %}
{#- The system message is always there. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = \"\" %}
{%- endif %}
{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}
{{- \"Today Date: \" + today + \"\\n\\n\" }}
{{- system + \"<|eot_id|>\" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
";
    let expected = |date: &str| {
        format!(
            "<bos><|start_header_id|>system<|end_header_id|>\n\nToday Date: {date}\n\nS<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
        )
    };
    renders(source, &expected("26 Jul 2024"));
    let mut dated = template(source).unwrap();
    dated.set_now(0);
    assert_eq!(dated.render(&system_user(), true).unwrap(), expected("01 Jan 1970"));
}

#[test]
fn gemma_wants_alternating_roles() {
    let source = "{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Roles must alternate') }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (prefix if loop.first else '') }}
    {{- message['content'] | trim }}
    {{- '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}
";
    renders(source, "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\n");
    let turned = [Message::new("assistant", "a"), Message::new("user", "b")];
    let error = template(source).unwrap().render(&turned, true).unwrap_err().to_string();
    assert!(error.contains("Roles must alternate") && !error.contains('\n'), "{error}");
}

#[test]
fn phi3_trims_blocks() {
    let source = "{% for message in messages %}
    {% if message['role'] == 'system' and message['content'] %}
{{'<|system|>\n' + message['content'] + '<|end|>\n'}}
    {%- elif message['role'] == 'user' %}
{{'<|user|>\n' + message['content'] + '<|end|>\n'}}
    {%- endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|assistant|>\n' }}
{%- else %}
{{ eos_token }}
{%- endif %}";
    renders(source, "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\n");
    let closed = template(source).unwrap().render(&system_user(), false).unwrap();
    assert_eq!(closed, "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<eos>");
}

#[test]
fn qwen3_drops_earlier_thoughts() {
    let source = "{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' and not ns.found is defined %}{% set ns.found = true %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if '</think>' in content and content.startswith('<think>') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}";
    let mut chat = template(source).unwrap();
    chat.set_variable("enable_thinking", &false.into());
    let messages = [Message::new("assistant", "<think>\nhm\n</think>\n\nA"), Message::new("user", "U")];
    assert_eq!(
        chat.render(&messages, true).unwrap(),
        "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    );
}

#[test]
fn smollm3_marks_what_an_assistant_says() {
    let source = "{%- set mode = '/think' -%}
{%- if messages[0].role == 'system' -%}
    {%- set system = messages[0].content -%}
    {%- if '/no_think' in system -%}{%- set mode = '/no_think' -%}{%- endif -%}
    {%- set custom = system.replace('/no_think', '').replace('/think', '').rstrip() -%}
{%- endif -%}
{{- '<|im_start|>system\nReasoning Mode: ' + mode + '\n\n' + custom + '<|im_end|>\n' -}}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else '' -%}
    {%- if message.role == 'user' -%}
        {{ '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' -%}
        {% generation %}
        {%- if mode == '/think' -%}
            {{ '<|im_start|>assistant\n' + content.lstrip('\n') + '<|im_end|>\n' }}
        {%- else -%}
            {{ '<|im_start|>assistant\n<think>\n\n</think>\n' + content.lstrip('\n') + '<|im_end|>\n' }}
        {%- endif -%}
        {% endgeneration %}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|im_start|>assistant\n' }}
{%- endif -%}";
    let messages = [Message::new("system", "S /no_think"), Message::new("user", "U"), Message::new("assistant", "\nA")];
    assert_eq!(
        template(source).unwrap().render(&messages, true).unwrap(),
        "<|im_start|>system\nReasoning Mode: /no_think\n\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n\
         <|im_start|>assistant\n<think>\n\n</think>\nA<|im_end|>\n<|im_start|>assistant\n"
    );
    renders("{%-generation-%} a {%+ endgeneration +%}b{{ generation is defined }}", "a bFalse");
}

#[test]
fn mistral_filters_messages() {
    let source = "{%- set today = strftime_now('%Y-%m-%d') %}
{%- set default = 'Today is ' + today + '.\\nWhat may I do?' %}
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system, turns = messages[0]['content'], messages[1:] %}
{%- else %}
    {%- set system, turns = default, messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{{- '[SYSTEM_PROMPT]' + system + '[/SYSTEM_PROMPT]' }}
{%- set asked = turns | selectattr('role', 'equalto', 'user') | list %}
{%- set plain = [] %}
{%- for message in turns %}
    {%- if message['role'] not in ['tool', 'tool_results'] and not message.get('tool_calls') %}
        {%- set plain = plain + [message] %}
    {%- endif %}
{%- endfor %}
{%- for message in turns %}
    {%- if message['role'] == 'user' %}
        {%- if tools is not none and message == asked[-1] %}{{- tools | tojson }}{%- endif %}
        {{- '[INST]' + message['content'] + '[/INST]' }}
    {%- else %}
        {{- message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}";
    let mut chat = template(source).unwrap();
    chat.set_now(0);
    let turns = [Message::new("user", "U"), Message::new("assistant", "A"), Message::new("user", "V")];
    assert_eq!(
        chat.render(&turns, true).unwrap(),
        "<bos>[SYSTEM_PROMPT]Today is 1970-01-01.\nWhat may I do?[/SYSTEM_PROMPT][INST]U[/INST]A<eos>[INST]V[/INST]"
    );
    let text = chat.render(&system_user(), true).unwrap();
    assert_eq!(text, "<bos>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U[/INST]");
}

#[test]
fn granite_names_its_roles() {
    let source = "{%- set ns = namespace(system='You are helpful.') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}{%- set ns.system = message.content %}{%- endif %}
{%- endfor %}
{%- if tools is defined and tools %}{%- set ns.system = ns.system + tools | tojson(indent=4) %}{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' ~ ns.system ~ '<|end_of_text|>\n' }}
{%- for message in messages if message.role != 'system' %}
    {{- '<|start_of_role|>' ~ message.role ~ '<|end_of_role|>' ~ message.content ~ '<|end_of_text|>\n' }}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|start_of_role|>assistant' }}
        {%- if controls %}{{- ' ' + controls | tojson() }}{%- endif %}
        {{- '<|end_of_role|>' }}
    {%- endif %}
{%- endfor %}";
    renders(
        source,
        "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n\
         <|start_of_role|>assistant<|end_of_role|>",
    );
}

/// Template with the structure of Qwen 3's and Hermes': tools before the conversation, calls and results within it, and
/// thoughts only in the last turn.
#[test]
fn tools_and_thoughts_go_where_templates_want_them() {
    let source = "{%- if tools %}{{- '<tools>' }}
{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{{- '</tools>' }}{%- endif %}
{%- set ns = namespace(last=messages | length - 1) %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|assistant|>' }}
        {%- if message.reasoning_content is string and loop.index0 > ns.last - 2 %}
            {{- '<think>' + message.reasoning_content.strip() + '</think>' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or [] %}
            {%- set call = call.function if call.function else call %}
            {%- set given = call.arguments if call.arguments is string else call.arguments | tojson %}
            {{- '<call>{\"name\": \"' + call.name + '\", \"arguments\": ' + given + '}</call>' }}
        {%- endfor %}
    {%- elif message.role == 'tool' %}
        {{- '<answer id=' + message.tool_call_id + '>' + message.content + '</answer>' }}
    {%- else %}
        {{- '<|' + message.role + '|>' }}
        {%- if message.content is string %}{{- message.content }}
        {%- else %}{%- for part in message.content %}{{- part.text }}{%- endfor %}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think></think>' }}{%- endif %}
{%- endif %}";
    let json = |text: &str| serde_json::from_str(text).unwrap();
    let mut chat = template(source).unwrap();
    chat.set_variable("tools", &json(r#"[{"type": "function", "function": {"name": "sum"}}]"#));
    chat.set_variable("enable_thinking", &false.into());
    let turns = [
        Message::new("user", "")
            .with("content", json(r#"[{"type": "text", "text": "1+"}, {"type": "text", "text": "2?"}]"#)),
        Message::new("assistant", "")
            .with("reasoning_content", " old ".into())
            .with("tool_calls", json(r#"[{"id": "7", "function": {"name": "sum", "arguments": {"a": 1, "b": 2}}}]"#)),
        Message::new("tool", "3").with("tool_call_id", "7".into()),
        Message::new("assistant", "3").with("reasoning_content", " new ".into()),
    ];
    assert_eq!(
        chat.render(&turns, true).unwrap(),
        "<tools>{\"type\": \"function\", \"function\": {\"name\": \"sum\"}}</tools><|user|>1+2?<|assistant|>\
         <call>{\"name\": \"sum\", \"arguments\": {\"a\": 1, \"b\": 2}}</call><answer id=7>3</answer>\
         <|assistant|><think>new</think>3<|assistant|><think></think>"
    );
    // Without tools and thoughts, nothing of them is rendered.
    assert_eq!(template(source).unwrap().render(&[Message::new("user", "U")], true).unwrap(), "<|user|>U<|assistant|>");
}

#[test]
fn json_is_pythons() {
    renders("{{ messages[0]|tojson }}", r#"{"role": "system", "content": "S"}"#);
    renders("{{ {'b': [1, true], 'a': '<ü>'}|tojson }}", r#"{"b": [1, true], "a": "<ü>"}"#);
    renders("{{ [1]|tojson(indent=4) }}", "[\n    1\n]");
}

#[test]
fn hostile_templates_end() {
    let error = |source: &str| {
        let error = template(source).and_then(|t| t.render(&system_user(), true)).unwrap_err();
        assert!(!error.to_string().contains('\n'), "{error}");
        error
    };
    assert!(matches!(error("{% for %}"), ChatError::Template(_)));
    assert!(matches!(error(&"x".repeat(MAX_TEMPLATE + 1)), ChatError::TooLarge { .. }));
    assert!(matches!(error(&format!("{{{{ {}1{} }}}}", "(".repeat(9_999), ")".repeat(9_999))), ChatError::Template(_)));
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert!(error(endless).to_string().contains("more steps than any template needs"));
    assert!(matches!(error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), ChatError::Render(_)));
    assert!(matches!(error("{{ 'x' * 90000000 }}"), ChatError::Render(_)));
}

/// Template with the structure of Gemma 2's.
const NO_SYSTEM: &str = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
    {% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}\
    [{{ m.role }}]{{ m.content }}{% endfor %}";

#[test]
fn a_system_message_that_is_refused_joins_the_users() {
    let chat = template(NO_SYSTEM).unwrap();
    let render = |turns: &[(&str, &str)]| {
        let messages: Vec<Message> = turns.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        chat.render(&messages, true)
    };
    assert_eq!(render(&[("system", "S"), ("user", "U")]).unwrap(), "[user]S\n\nU");
    assert_eq!(render(&[("system", "S"), ("developer", "D"), ("user", "U")]).unwrap(), "[user]S\n\nD\n\nU");
    assert_eq!(render(&[("system", ""), ("user", "U"), ("assistant", "A")]).unwrap(), "[user]U[assistant]A");
    assert_eq!(render(&[("system", "S")]).unwrap(), "[user]S");
    assert_eq!(render(&[("user", "U"), ("user", "V"), ("assistant", "A")]).unwrap(), "[user]U\n\nV[assistant]A");
    assert!(render(&[("assistant", "A")]).is_err());
}

#[test]
fn what_templates_refuse_is_changed_without_losing_words() {
    let call = |thinking: Option<&str>, content: &str| {
        let call = serde_json::json!([{ "type": "function", "function": { "name": "f", "arguments": { "a": 1 } } }]);
        let message = Message::new("assistant", content).with("tool_calls", call);
        [thinking.into_iter().fold(message, |message, text| message.with("thinking", text.into()))]
    };
    // As DeepSeek-V3 and functionary have it.
    let joins = "{% for m in messages %}{{ m.content + m.tool_calls[0].function.arguments }}{% endfor %}";
    assert_eq!(template(joins).unwrap().render(&call(None, "So: "), true).unwrap(), "So: {\"a\":1}");
    // As gpt-oss has it.
    let either = "{% for m in messages %}{% if m.content and m.thinking %}{{ raise_exception('not both') }}{% endif %}\
                  {{ m.thinking or m.content }}{{ m.tool_calls[0].function.arguments|tojson }}{% endfor %}";
    let either = template(either).unwrap();
    assert_eq!(either.render(&call(None, "So:"), true).unwrap(), "So:{\"a\": 1}");
    assert!(either.render(&call(Some("Hm."), "So:"), true).unwrap().starts_with("Hm.\n\nSo:"));
    let never = "{{ raise_exception('never') }}";
    let error = template(never).unwrap().render(&call(Some("Hm."), "So:"), true).unwrap_err();
    assert!(error.to_string().contains("never"), "{error}");
}

#[test]
fn a_function_may_lack_what_a_template_reads_always() {
    let source = "<tool_call>{% for t in tools %}{{ t.function.name + t.function.description }}{{ t.function.parameters.properties|length }}{% endfor %}";
    let chat = template(source).unwrap();
    let tools = vec![serde_json::json!({ "type": "function", "function": { "name": "now" } })];
    let render = |tools| chat.with(&ChatOptions { tools, ..ChatOptions::default() })?.render(&system_user(), true);
    assert_eq!(render(tools), Ok("<tool_call>now0".to_owned()));
    assert!(matches!(render(vec![serde_json::json!("now")]), Err(ChatError::Render(_))));
}

#[test]
fn developers_are_system_unless_the_template_knows_them() {
    let developer = [Message::new("developer", "D"), Message::new("user", "U")];
    let plain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    assert_eq!(template(plain).unwrap().render(&developer, true).unwrap(), "[system]D[user]U");
    let capital = "{% for m in messages %}[{{ m.role|capitalize }}]{{ m.content }}{% endfor %}";
    assert_eq!(template(capital).unwrap().render(&developer, true).unwrap(), "[System]D[User]U");
    let knows = "{% for m in messages %}{% if m.role in ['user', 'developer'] %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
    assert_eq!(template(knows).unwrap().render(&developer, true).unwrap(), "[developer]D[user]U");
    let both = [Message::new("system", "S"), developer[0].clone(), developer[1].clone()];
    assert_eq!(template(plain).unwrap().render(&both, true).unwrap(), "[system]S\n\nD[user]U");
}

#[test]
fn a_role_that_nobody_knows_is_named() {
    let plain = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    let error = template(plain).unwrap().render(&[Message::new("narrator\n", "N")], true).unwrap_err();
    assert_eq!(error, ChatError::Role("narrator ".into()));
    assert!(error.to_string().contains("\"narrator \"") && error.to_string().contains("use system"), "{error}");
    let knows = "{% for m in messages %}{{ 'N:' if m.role == 'narrator' }}{{ m.content }}{% endfor %}";
    assert_eq!(template(knows).unwrap().render(&[Message::new("narrator", "N")], true).unwrap(), "N:N");
}

#[test]
fn texts_are_parts_where_nothing_else_is_read() {
    let typed = "{% for m in messages %}[{{ m.role }}]{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endfor %}";
    renders(typed, "[system]S[user]U");
    let either =
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}parts{% endif %}{% endfor %}";
    renders(either, "SU");
}

#[test]
fn another_template_may_be_for_tools() {
    let mut m = Metadata::default();
    m.insert("tokenizer.chat_template", gguf::Value::String("plain".into()));
    let of_tools = "<tool_call>{% for tool in tools %}{{ tool.function.name }}{% endfor %}{{ mood }}";
    m.insert("tokenizer.chat_template.tool_use", gguf::Value::String(of_tools.into()));
    let chat = ChatTemplate::from_metadata(&m).unwrap();
    assert_eq!(chat.render(&system_user(), true).unwrap(), "plain");
    let tool = serde_json::json!({ "type": "function", "function": { "name": "sum" } });
    let mut options = ChatOptions { tools: vec![tool], ..ChatOptions::default() };
    options.variables.insert("mood".into(), "!".into());
    assert_eq!(chat.with(&options).unwrap().render(&system_user(), true).unwrap(), "<tool_call>sum!");
    options.tool_choice = ToolChoice::None;
    assert_eq!(chat.with(&options).unwrap_err(), ChatError::Variable("mood".into()));
}

#[test]
fn json_has_the_options_of_transformers() {
    let value = "{'b': ['ü', 1.0], 'a': {}}";
    renders(&format!("{{{{ {value}|tojson(separators=(',', ':')) }}}}"), "{\"b\":[\"ü\",1.0],\"a\":{}}");
    renders(&format!("{{{{ {value}|tojson(true, none, none, true) }}}}"), "{\"a\": {}, \"b\": [\"\\u00fc\", 1.0]}");
    renders("{{ '🦀'|tojson(ensure_ascii=True) }}", "\"\\ud83e\\udd80\"");
    renders("{{ {'b': 1, 'a': [2]}|tojson(indent='-', sort_keys=true) }}", "{\n-\"a\": [\n--2\n-],\n-\"b\": 1\n}");
}

#[test]
fn formats_are_pythons() {
    renders("{{ '%s: %05.1f%%, %d|%-4s|%+d|%x' % ('a', 3.14159, 7, 'b', 5, 255) }}", "a: 003.1%, 7|b   |+5|ff");
    renders("{{ '%(role)s' % messages[0] }}{{ '%s' % 1 }}{{ '%s'|format([1]) }}", "system1[1]");
    renders("{{ '%g %g %e %.3g %s' % (0.0001, 1e20, 12345.678, 2.0, none) }}", "0.0001 1e+20 1.234568e+04 2 None");
    renders(
        "{{ '{} {1}'.replace('1', '').format(1, 'b') }}{{ '{0[role]} {n:>4} {{}}'.format(messages[0], n=7) }}",
        "1 bsystem    7 {}",
    );
    renders("{{ '{:,} {:06.2f} {:^5}| {!r}'.format(1234567, -1.5, 'x', 'q') }}", "1,234,567 -01.50   x  | 'q'");
    for wrong in ["'%s %s' % 1", "'%s' % (1, 2)", "'%d' % 'a'", "'%5000d' % 1", "'{} {}'.format(1)", "'%q' % 1"] {
        let error = template(&format!("{{{{ {wrong} }}}}")).unwrap().render(&system_user(), true);
        assert!(error.is_err(), "{wrong}: {error:?}");
    }
}

#[test]
fn what_has_no_such_place_is_undefined() {
    renders(
        "{{ {'a': 1}[[]] is defined }}{{ [1]['x'] is defined }}{{ 'ab'[true] }}{{ nope is iterable }}",
        "FalseFalsebTrue",
    );
    renders(
        "{% set m = {'items': 1} %}{{ m['items'] }}{{ m.items is callable }}{{ [m]|map(attribute='items')|first }}",
        "1True1",
    );
    renders("{{ (1, 'a') }}{{ (1,) }}{{ {'a': 1}.items()|list }}{{ (1, 2)|list }}", "(1, 'a')(1,)[('a', 1)][1, 2]");
    renders("{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(0, *[3]) }}", "1203");
}
