//! Cases of `route`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, [t, n, k]: [usize; 3], gate, biased, normalised, scale, fill: Fill| {
        // The first words name a number of groups, and how many of them are used.
        let mut words = name.split(' ').map_while(|word| word.parse().ok());
        let groups = words.next().zip(words.next()).map(|(count, used)| Groups { count, used });
        let op = Route { k, gate, biased, normalised, scale, groups };
        let name = format!("{name} {t}x{n} {k} {gate:?} biased {biased} normalised {normalised} scale {scale}");
        cases.push(Case::new(op, name, StepParams::at(0, t as u32), |o| {
            let logits = o.filled(&[t, n], fill);
            let bias = biased.then(|| o.filled(&[n], Fill::Uniform(-0.5, 0.5)));
            [logits].into_iter().chain(bias).collect()
        }));
    };
    let wide = Fill::Uniform(-4.0, 4.0);
    for gate in Gate::ALL {
        for biased in [false, true] {
            add("", [1, 8, 2], gate, biased, true, 1.0, wide.clone());
            add("", [5, 33, 7], gate, biased, false, 1.0, wide.clone());
            add("", [3, 128, 8], gate, biased, true, 2.5, wide.clone());
        }
        for biased in [false, true] {
            add("4 2 groups", [5, 8, 3], gate, biased, true, 2.5, wide.clone());
            add("3 2 groups", [2, 9, 4], gate, biased, false, 1.0, wide.clone());
        }
        add("8 4 groups", [3, 256, 8], gate, true, true, 2.5, wide.clone());
        add("4 1 groups, ties", [2, 12, 3], gate, false, true, 1.0, Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0]));
        add("2 1 groups, one nan", [3, 20, 4], gate, false, true, 1.0, Fill::odd_one(25, f32::NAN));
        add("32 31 groups, very many", [2, 512, 64], gate, false, true, 1.0, wide.clone());
        add("all of", [2, 6, 6], gate, false, true, 1.0, wide.clone());
        add("one of", [4, 4, 1], gate, false, false, 1.0, wide.clone());
        add("ties", [2, 12, 5], gate, false, true, 1.0, Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0]));
        add("one nan", [3, 20, 4], gate, false, true, 1.0, Fill::odd_one(25, f32::NAN));
        add("infinite", [2, 9, 3], gate, true, true, 1.0, Fill::odd_one(3, f32::INFINITY));
        add("far apart", [1, 7, 3], gate, false, false, 1.0, Fill::Uniform(-200.0, 200.0));
        add("very many", [1, 512, 64], gate, false, true, 1.0, wide.clone());
    }
    add("vanishing", [2, 9, 3], Gate::Sigmoid, false, true, 1.0, Fill::Uniform(-40.0, -20.0));
    cases
}
