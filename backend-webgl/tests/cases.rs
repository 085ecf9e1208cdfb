//! Every conformance case compiles and runs, in both layouts and with tiny textures.
#![cfg(not(target_arch = "wasm32"))]

use anygpu_backend_webgl::testing::{Hooks, open};
use anygpu_backend_webgl::{Layout, Options, Tuning};
use backend_api::run::Rig;
use backend_api::{Backend, Error, cases};

fn run_all(options: Options, max_targets: Option<u32>) {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == "webgl")) {
        println!("SKIPPED: ANYGPU_SKIP names webgl");
        return;
    }
    let gl = match open(options, Hooks { max_targets, ..Hooks::default() }) {
        Ok(gl) => gl,
        Err(e) => panic!("{e}; or skip it with ANYGPU_SKIP=webgl"),
    };
    let mut failures = Vec::new();
    let mut ran = 0;
    for case in cases::all() {
        let run = || -> Result<(), Error> {
            let mut rig = Rig::of_case(&gl, &case)?;
            let before = gl.stats();
            rig.step(&case.step)?;
            let spent = gl.stats().since(&before);
            assert_eq!(spent.objects, 0, "a step makes no objects");
            assert!(spent.submits <= 1, "a step submits what came before it at most");
            Ok(())
        };
        match run() {
            Ok(()) => ran += 1,
            Err(error) => failures.push(format!("{} {}: {error}", case.op, case.name)),
        }
    }
    assert!(failures.is_empty(), "{ran} ran, {} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(ran > 500, "only {ran} cases ran");
}

#[test]
fn packed() {
    run_all(Options::default(), None);
}

#[test]
fn folded_and_layered() {
    run_all(Options { max_texture_size: Some(256), ..Options::default() }, Some(4));
}

#[test]
fn one_value_a_texel() {
    run_all(Options { layout: Layout::R32f, ..Options::default() }, None);
}

#[test]
fn in_slices() {
    run_all(Options { tuning: Some(Tuning::default()), ..Options::default() }, None);
}
