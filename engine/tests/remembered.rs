//! Cached self-test results of an earlier start: a second start tests nothing, a changed device tests everything, and
//! another model only its new operators. The tests are counted on all backends of this machine.

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Choice, Engine, EngineOptions, Outcome, Proofs, Report, SelectOptions};
use model::BytesSource;
use serde_json::Value;

use crate::GAB;

/// Model with other formats and operators.
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/fixtures/gemma2-swa.gguf");

fn load(bytes: &[u8], backend: Choice, proven: &Proofs) -> Report {
    let select = SelectOptions { backend, proven: Rc::new(proven.clone()), ..Default::default() };
    let options = EngineOptions { select, n_ctx: Some(64), ..Default::default() };
    let source = BytesSource(bytes.to_vec());
    block_on(Engine::load(&source, &options, Rc::new(NativeHost::default()), &mut |_| {})).unwrap().report().clone()
}

fn with(proofs: &Proofs, report: &Report) -> Proofs {
    let mut proofs = proofs.clone();
    proofs.add(*report.proof.clone().unwrap());
    // Files keep this JSON.
    serde_json::from_str(&serde_json::to_string(&proofs).unwrap()).unwrap()
}

/// Changes the values of a field, wherever it is.
fn altered(proofs: &Proofs, field: &str, value: &Value) -> Proofs {
    fn alter(json: &mut Value, field: &str, value: &Value) {
        match json {
            Value::Object(fields) => fields.iter_mut().for_each(|(name, own)| match name == field && !own.is_null() {
                true => *own = value.clone(),
                false => alter(own, field, value),
            }),
            Value::Array(values) => values.iter_mut().for_each(|own| alter(own, field, value)),
            _ => {}
        }
    }
    let mut json = serde_json::to_value(proofs).unwrap();
    alter(&mut json, field, value);
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_second_start_proves_only_what_changed() {
    let first = load(GAB, Choice::Auto, &Proofs::default());
    assert!(!first.remembered && first.proofs > 0);
    let known = with(&Proofs::default(), &first);

    let second = load(GAB, Choice::Auto, &known);
    assert_eq!((second.remembered, second.proofs, second.chosen), (true, 0, first.chosen));
    assert!(second.proof.is_none(), "there is nothing new to keep");
    let outcomes = |report: &Report| report.rungs.iter().map(|r| (r.name, r.outcome.clone())).collect::<Vec<_>>();
    assert_eq!(outcomes(&second), outcomes(&first), "what was refused is told of as it was then");
    let chosen = |report: &Report| report.chosen().map(|rung| (rung.adapter.clone(), rung.facts.clone())).unwrap();
    assert_eq!(chosen(&second), chosen(&first));

    // Results for another driver, build or other options, and old ones, are ignored.
    for (field, value) in [("adapter", "another".into()), ("place", "elsewhere".into()), ("at", 0.into())] {
        let again = load(GAB, Choice::Auto, &altered(&known, field, &value));
        assert!(!again.remembered && again.proofs > 0, "{field}");
    }
    let asked = load(GAB, Choice::Cpu, &known);
    assert!(!asked.remembered && asked.proofs > 0);
}

#[test]
fn another_model_proves_what_it_needs_besides() {
    let other = std::fs::read(OTHER).unwrap();
    let fresh = load(&other, Choice::Cpu, &Proofs::default());
    let known = with(&Proofs::default(), &load(GAB, Choice::Cpu, &Proofs::default()));
    let first = load(&other, Choice::Cpu, &known);
    assert!(first.remembered && (1..fresh.proofs).contains(&first.proofs), "{} of {}", first.proofs, fresh.proofs);
    let known = with(&known, &first);
    for bytes in [GAB, &other] {
        let again = load(bytes, Choice::Cpu, &known);
        assert_eq!((again.remembered, again.proofs), (true, 0));
    }
}

#[test]
fn proofs_that_were_not_written_by_this_are_no_proofs() {
    for text in ["{}", "[{}]", "[1]", r#"[{"place":""}]"#] {
        assert!(serde_json::from_str::<Proofs>(text).is_err(), "{text}");
    }
    let first = load(GAB, Choice::Cpu, &Proofs::default());
    let known = with(&Proofs::default(), &first);
    let strange = altered(&known, "name", &"no such rung".into());
    assert!(!load(GAB, Choice::Cpu, &strange).remembered);
    assert!(matches!(first.chosen().unwrap().outcome, Outcome::Chosen));
}
