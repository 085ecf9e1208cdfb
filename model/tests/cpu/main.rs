//! Whole models on the CPU, plain and fast, against known answers.

#[path = "../common/mod.rs"]
mod common;
mod refusals;

use std::rc::Rc;

use backend_api::Backend;
use reference_cpu::{Cpu, Options};

fn cpu(fast: bool) -> Rc<dyn Backend> {
    Rc::new(Cpu::new(Options { fast, ..Default::default() }))
}

macro_rules! fixtures {
    ($($test:ident = $file:literal),+ $(,)?) => {
        $(#[test]
        fn $test() {
            common::fixture($file, cpu(false));
            common::fixture($file, cpu(true));
        })+
    };
}

fixtures! {
    gpt2 = "gpt2-tiny",
    llama_grouped_queries_tied = "llama-gqa-tied",
    llama_yarn = "llama-yarn4",
    llama_q4_0 = "llama-q4_0",
    llama_q8_0 = "llama-q8_0",
    llama_mixed_formats = "llama-e96-q5_0-mix",
    llama_k_formats = "llama-q4_k-mix",
}

/// A few tokens: the plain CPU takes a second for each.
#[test]
fn gab_plain() {
    common::gab(cpu(false), 6);
}

#[test]
fn gab_fast() {
    common::gab(cpu(true), 64);
}

/// On the fast CPU alone: the plain one would take minutes.
#[test]
fn smollm2() {
    common::smollm2(cpu(true), usize::MAX);
}
