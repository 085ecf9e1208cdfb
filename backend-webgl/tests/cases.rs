//! Every conformance case compiles and runs, in both layouts and with tiny textures.
#![cfg(not(target_arch = "wasm32"))]

use backend_api::fuse::is_fused;
use backend_api::{Backend, Error, Op, Plan, StorageDesc, StorageId};
use backend_webgl::{Layout, Options, Tuning, WebGl};

fn run_all(options: Options) {
    if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|s| s.trim() == "webgl")) {
        println!("SKIPPED: ANYGPU_SKIP names webgl");
        return;
    }
    let gl = match WebGl::open(options) {
        Ok(gl) => gl,
        Err(e) => panic!("{e}; or skip it with ANYGPU_SKIP=webgl"),
    };
    let mut failures = Vec::new();
    let (mut ran, mut refused) = (0, 0);
    for case in Op::all_cases() {
        let run = || -> Result<(), Error> {
            let plan = Plan::new(case.graph.clone(), &|t| gl.slot_size(t));
            let ids: Vec<StorageId> =
                case.graph.externals().map(|(_, t)| gl.create(&StorageDesc::of(t))).collect::<Result<_, _>>()?;
            let mut program = gl.compile(&plan, &ids)?;
            let before = gl.stats();
            program.step(&case.step)?;
            let spent = gl.stats().since(&before);
            assert_eq!(spent.objects, 0, "a step makes no objects");
            assert!(spent.submits <= 1, "a step submits what came before it at most");
            drop(program);
            ids.into_iter().for_each(|id| gl.destroy(id));
            Ok(())
        };
        match run() {
            Ok(()) => ran += 1,
            // Fused operators may be refused: the caller expands them.
            Err(Error::Unsupported(_)) if case.graph.nodes().iter().all(|node| is_fused(&node.op)) => refused += 1,
            Err(error) => failures.push(format!("{} {}: {error}", case.op, case.name)),
        }
    }
    assert!(failures.is_empty(), "{ran} ran, {} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(ran > 440 && refused < 100, "only {ran} cases ran, and {refused} were refused");
}

#[test]
fn packed() {
    run_all(Options::default());
}

#[test]
fn folded_and_layered() {
    run_all(Options { max_texture_size: Some(256), max_targets: Some(4), ..Options::default() });
}

#[test]
fn one_value_a_texel() {
    run_all(Options { layout: Layout::R32f, ..Options::default() });
}

#[test]
fn in_slices() {
    run_all(Options { tuning: Some(Tuning::default()), ..Options::default() });
}
