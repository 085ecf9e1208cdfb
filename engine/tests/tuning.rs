//! Tuning results are used on the device where they were found, and on no other. The test in models.rs shows that
//! values do not change results.
//!
//! A backend whose driver is absent fails, unless the environment variable `ANYGPU_SKIP` names it.

use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{Choice, EngineOptions, SelectOptions, Values, Winner, Winners, bench::ModelOptions, select, tune};
use backend_api::{Backend, DType, Error, Shape, StorageDesc};
use model::BytesSource;

use crate::GAB;

fn skipped(name: &str) -> bool {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default().split(',').any(|s| s.trim() == name);
    if skip {
        println!("SKIPPED: ANYGPU_SKIP names {name}");
    }
    skip
}

#[test]
fn tuning_is_refused_once_something_was_made() {
    if skipped("webgl") {
        return;
    }
    let mut backend = backend_webgl::WebGl::open(Default::default()).unwrap();
    for (name, value) in [("block_rows", 5), ("no_such_thing", 4), ("page_shift", 11)] {
        assert!(matches!(backend.tune(name, value), Err(Error::Invalid(_))), "{name} = {value}");
    }
    backend.tune("block_rows", 4).unwrap();
    assert!(backend.tuning().iter().any(|t| t.name == "block_rows" && t.value == 4));
    let shape = Shape::new(&[4, 4]).unwrap();
    let desc = StorageDesc { name: "s".into(), shape, dtype: DType::F32, guard_rows: 0 };
    let storage = backend.create(&desc).unwrap();
    assert!(matches!(backend.tune("block_rows", 8), Err(Error::Invalid(_))));
    backend.destroy(storage);
    backend.tune("block_rows", 8).unwrap();
}

fn winner(adapter: &str, value: usize) -> Winner {
    Winner {
        rung: "webgl packed".into(),
        adapter: adapter.into(),
        values: Values::from([("block_rows".into(), value)]),
    }
}

#[test]
fn winners_are_kept_by_device() {
    let mut winners = Winners::default();
    winners.add(winner("one", 4));
    winners.add(winner("two", 4));
    winners.add(winner("one", 8));
    let json = serde_json::to_string(&winners).unwrap();
    assert_eq!(json.matches("\"one\"").count(), 1, "{json}");
    assert_eq!(serde_json::from_str::<Winners>(&json).unwrap(), winners);
    winners.add(Winner { values: Values::new(), ..winner("one", 8) });
    assert!(!serde_json::to_string(&winners).unwrap().contains("\"one\""));
}

#[test]
fn a_selection_uses_what_was_found_on_its_device() {
    if skipped("webgl") {
        return;
    }
    let fact = |tuned: Winners, wanted: &str| {
        let options = SelectOptions { backend: Choice::WebGl, tuned: Rc::new(tuned), ..Default::default() };
        let (backend, report) = block_on(select(None, &options, &NativeHost::default())).unwrap();
        let facts = report.chosen().unwrap().facts.clone();
        let found = facts.into_iter().find(|(name, _)| *name == wanted).map(|(_, text)| text);
        (backend.info().adapter.clone(), found)
    };
    let (adapter, plain) = fact(Winners::default(), "tuning");
    assert!(plain.unwrap().contains("block_rows 8"));
    let with = |winner| {
        let mut winners = Winners::default();
        winners.add(winner);
        winners
    };
    assert!(fact(with(winner(&adapter, 4)), "tuning").1.unwrap().contains("block_rows 4"));
    assert!(fact(with(winner("another device", 4)), "tuning").1.unwrap().contains("block_rows 8"));
    // Results of another version cost speed, not the backend, and none of them is used.
    let mut mixed = winner(&adapter, 4);
    mixed.values.insert("no_such_thing".into(), 1);
    let stale = fact(with(mixed.clone()), "tuning not used").1.unwrap();
    assert!(stale.contains("no_such_thing = 1"), "{stale}");
    assert!(fact(with(mixed), "tuning").1.unwrap().contains("block_rows 8"));
}

#[test]
fn a_backend_without_tunables_says_so() {
    let select = SelectOptions { backend: Choice::Cpu, ..Default::default() };
    let engine = EngineOptions { select, ..Default::default() };
    let options = ModelOptions { prefill: 4, decode: 2, repeat: 1, ..ModelOptions::default() };
    let (source, host) = (BytesSource(GAB), NativeHost::default());
    let report = block_on(tune("gab", &source, &engine, &options, &host, &mut |_| {}, &mut |_| {})).unwrap();
    assert_eq!((report.trials.len(), report.winner.values.len(), report.ratios), (1, 0, None));
    assert!(report.to_string().contains("has nothing to tune"), "{report}");
}
