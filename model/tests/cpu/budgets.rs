//! Tests of the host memory budget of waiting sequences.

use std::rc::Rc;

use anygpu_model::{Session, Sessions};
use backend_api::Backend;

use crate::common::turns::{alone, ask, fixture};

/// The budget is never exceeded, and the least recently used sequences are dropped.
pub fn budgets(name: &str, backend: &Rc<dyn Backend>) {
    let (model, text) = fixture(name, backend);
    let mut by_itself = Session::new(model.clone()).unwrap();
    let mut one = |budget| {
        let mut sessions = Sessions::new(Session::new(model.clone()).unwrap(), budget);
        for round in 0..3 {
            for (at, name) in ["A", "B", "C"].iter().enumerate() {
                let prompt = &text[at..text.len() - 4 + 2 * round];
                let (answer, _) = ask(&mut sessions, name, prompt);
                assert_eq!(answer, alone(&mut by_itself, prompt), "{name} in {budget} bytes");
                let held: usize = sessions.list().iter().map(|info| info.bytes).sum();
                assert!(held <= budget, "{held} of {budget} bytes");
            }
        }
        sessions.list().iter().map(|info| (info.name.to_owned(), info.bytes)).collect::<Vec<_>>()
    };
    let all = one(usize::MAX);
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["C", "B", "A"]);
    let (most, sum) = (all[2].1, all.iter().map(|(_, bytes)| bytes).sum::<usize>());
    for budget in [0, 1, most / 2, most, 2 * most, sum] {
        one(budget);
    }
    // There is room for one sequence beside the one on the device, so the oldest is gone.
    assert_eq!(one(most).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["C", "B"]);
}
