//! Hostile templates and vocabularies end soon, in little memory and on a small stack, with a text or an error of one
//! line.

use std::alloc::System;
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anygpu_model::chat::{ChatError, ChatTemplate, Message};
use anygpu_model::fuzz;
use anygpu_model::gguf::{Metadata, Value};
use anygpu_model::tokenizer::Tokenizer;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by whoever counts allocations, which are those of all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// Number of random cases.
const CASES: u64 = 2000;
/// Most memory that a template may allocate, freed memory included.
const MAX_ALLOCATED: usize = 512 << 20;
/// Most processor time of a template. Other programs on the machine do not count.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Stack size: a quarter of that of browsers for wasm, where frames are larger and the page has used some of it.
const STACK: usize = 256 << 10;

/// Returns the processor time of this thread or, if the system does not report it, the time of day.
fn spent() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedule = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = schedule.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Renders a conversation.
fn render(source: &str) -> Result<String, ChatError> {
    let mut metadata = Metadata::default();
    metadata.insert("tokenizer.chat_template", Value::String(source.into()));
    let mut template = ChatTemplate::from_metadata(&metadata)?;
    template.set_now(0);
    let messages = ["system", "user", "assistant", "user"].map(|role| Message::new(role, "Once upon\n a time"));
    template.render(&messages, true)
}

/// Links of chains that are as long as the largest template: `first`, then `link` repeated, then `last`.
const CHAINS: &[[&str; 3]] = &[
    ["{{ 1", "~1", " }}"],
    ["{{ 1", "+1", " }}"],
    ["{{ 1", "-1", " }}"],
    ["{{ 1", "*1", " }}"],
    ["{{ 1", "**1", " }}"],
    ["{{ 1", "==1", " }}"],
    ["{{ 1", " in [1]", " }}"],
    ["{{ 1", " and 1", " }}"],
    ["{{ 0", " or 0", " }}"],
    ["{{ ", "not ", "1 }}"],
    ["{{ ", "- ", "1 }}"],
    ["{{ ", "(", "1 }}"],
    ["{{ ", "[", "1 }}"],
    ["{{ ", "{1:", "1 }}"],
    ["{{ messages", "[0]", " }}"],
    ["{{ messages", "[:]", " }}"],
    ["{{ messages", ".x", " }}"],
    ["{{ messages", "()", " }}"],
    ["{{ messages", "|list", " }}"],
    ["{{ messages", "|list|map('list')", " }}"],
    ["{{ messages", " is defined", " }}"],
    ["{{ ", "1 if 0 else ", "1 }}"],
    ["{{ ", "messages[", "0 }}"],
    ["{{ ", "range(", "0 }}"],
    ["{% if 0 %}", "{% elif 0 %}", "{% endif %}"],
    ["", "{% if 1 %}", ""],
    ["", "{% for x in [1] %}", ""],
    ["", "{% set x %}", ""],
    ["", "{% filter trim %}", ""],
    ["", "{% macro f() %}", ""],
    ["{% filter trim", "|trim", " %}{% endfilter %}"],
    ["{% set ", "x, ", "x = 1 %}"],
    ["{% set ", "(", "x = 1 %}"],
    ["{{ [[1]]|map(", "'map', ", "'list')|list }}"],
    ["{{ 'a'|map(", "'map', ", "'list')|list }}"],
    ["{{ range(", "1, ", "1) }}"],
    ["{{ \"", "\\\\", "\" }}"],
    ["", "{{ messages }}", ""],
    ["{% macro f(x) %}{{ x }}{% endmacro %}", "{{ f(", "1 }}"],
    ["{% set x = [1] %}", "{% set x = [x, x] %}", "{{ x }}"],
    ["{% set x = [1] %}", "{% set x = [x, x] %}", "{{ x == x|list }}{{ x|tojson }}"],
    ["{% set x = 'ab' %}", "{% set x = x + x %}", "{{ x|length }}"],
    ["{% set x = 'ab' %}", "{% set x = x ~ x %}", "{{ x|length }}"],
    ["{% set x = 'ab' %}", "{% set x = x|replace('a', x) %}", "{{ x|length }}"],
    ["{% set x = 'ab' %}", "{% set x = x|join(x) %}", "{{ x|length }}"],
    ["{% set x = [1] %}", "{% set x = x * 2 %}", "{{ x|length }}"],
    ["{% set x = 3 %}", "{% set x = x * x %}", "{{ x }}"],
];

/// Makes a macro with many parameters, called repeatedly with many names.
fn many_names() -> String {
    let names = |each: &str| (0..10_000).map(|i| each.replace('#', &i.to_string())).collect::<String>();
    let (parameters, arguments) = (names("a#,"), names("b#=1,"));
    format!(
        "{{% macro f({parameters}) %}}{{% endmacro %}}{{% for i in range(9999) %}}{{{{ f({arguments}) }}}}{{% endfor %}}"
    )
}

/// Returns all cases with their names.
fn cases() -> impl Iterator<Item = (String, String)> {
    let chains = CHAINS.iter().flat_map(|[first, link, last]| {
        let most = (255 << 10) / link.len();
        [100, 1000, most]
            .map(|count| (format!("{first}{link} x {count}"), format!("{first}{}{last}", link.repeat(count))))
    });
    let chains = chains.chain([("many names".to_owned(), many_names())]);
    chains.chain((0..CASES).map(|seed| (format!("fuzz::template({seed})"), fuzz::template(seed))))
}

#[test]
fn hostile_templates_end_soon_in_little_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut slowest, mut largest) = (Duration::ZERO, 0);
    for (name, source) in cases() {
        let begin = spent();
        let region = Region::new(ALLOCATOR);
        let result = render(&source);
        let change = region.change();
        let took = spent() - begin;
        let allocated = change.bytes_allocated + change.bytes_reallocated.unsigned_abs();
        slowest = slowest.max(took);
        largest = largest.max(allocated);
        assert!(took < MAX_TIME, "{name} takes {took:?}: {result:?}");
        assert!(allocated < MAX_ALLOCATED, "{name} allocates {allocated} bytes");
        if let Err(error) = result {
            let error = error.to_string();
            assert!(!error.contains(char::is_control) && error.len() < 1000, "{name}: {error}");
        }
    }
    println!("slowest {slowest:?}, most {} MiB", largest >> 20);
}

/// Environment variable of the process that runs the cases on a small stack: a stack overflow ends the process, which a
/// test cannot catch.
const CHILD: &str = "ANYGPU_HOSTILE_CHILD";

#[test]
fn hostile_templates_end_on_a_small_stack() {
    let name = "hostile_templates_end_on_a_small_stack";
    if env::var_os(CHILD).is_some() {
        let all = || cases().for_each(|(name, source)| drop((render(&source), name)));
        thread::Builder::new().stack_size(STACK).spawn(all).unwrap().join().unwrap();
        return;
    }
    let child = Command::new(env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "1").output().unwrap();
    assert!(child.status.success(), "{}\n{}", child.status, String::from_utf8_lossy(&child.stderr));
}

/// Bytes of a long prompt.
const PROMPT: usize = 256 << 10;
/// Most memory for each byte of it, including freed memory: its candidate entry, its token, and growing vectors.
const MAX_ALLOCATED_PER_BYTE: usize = 256;

#[test]
fn tokens_within_tokens_take_memory_by_the_length_of_the_text() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tokens: Vec<String> = (1..=256).map(|i| "a".repeat(i)).collect();
    let mut metadata = Metadata::default();
    metadata.insert("tokenizer.ggml.model", Value::String("gpt2".into()));
    metadata.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(tokens.iter().collect())));
    metadata.insert("tokenizer.ggml.token_type", Value::Ints(vec![3; 256]));
    metadata.insert("tokenizer.ggml.merges", Value::Strings(Arc::default()));
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let texts = ["a".repeat(PROMPT), format!("{}b", "a".repeat(255)).repeat(PROMPT / 256), "ab".repeat(PROMPT / 2)];
    for text in texts {
        let begin = spent();
        let region = Region::new(ALLOCATOR);
        let ids = tokenizer.encode(&text, true, true);
        let change = region.change();
        let took = spent() - begin;
        let allocated = change.bytes_allocated + change.bytes_reallocated.unsigned_abs();
        assert!(allocated < MAX_ALLOCATED_PER_BYTE * PROMPT, "{allocated} bytes for {:?}", &text[..260]);
        assert!(took < Duration::from_secs(10), "{took:?} for {:?}", &text[..260]);
        let covered: usize = ids.iter().map(|&id| tokenizer.token_text(id).len()).sum();
        assert_eq!(covered, text.matches('a').count());
    }
}
