//! The mutation check: breaks kernels one at a time and sees that the suite notices each.

mod table;

use crate::backends::open;
use crate::share::Share;
use anygpu_conformance::run::{Outcome, judge, run as run_case};
use anygpu_conformance::suite;
use anygpu_conformance::variants::Variant;
use anyhow::{Context, Result, bail};
use backend_api::case::Case;
use backend_api::compare::Values;
use backend_api::elementary::{Expr, Language};
use backend_api::op::{GluKind, UnaryKind, function, functions};
use backend_api::run::{NativeHost, OVERRUN};
use backend_api::testing::ShaderPatch;
use backend_api::{Backend, Error, Op};
use reference_cpu::{Cpu, Options};
use std::collections::HashMap;
use table::Mutation;

/// The cases of an operator, small ones first, with the reference's results.
type Expected = Vec<(Case, Vec<Values>)>;
/// Mutations by the variant that they are made in.
pub type Tables = &'static [(&'static str, &'static [Mutation])];
type Files = Vec<(&'static str, String)>;

/// The name that mutations have for what is printed for shaders, which no file has.
const FUNCTIONS: &str = "functions";

/// All mutations.
pub fn tables() -> Tables {
    &[
        ("webgpu-core", table::WEBGPU),
        ("webgpu-split", table::SUBGROUPS),
        ("webgpu-software", table::SOFTWARE),
        ("webgpu-int8", table::INT8),
        ("webgl", table::WEBGL),
        ("webgl-r32f", table::R32F),
        ("webgl-bits", table::BITS),
        ("webgl-fold", table::FOLDED),
        ("webgl-split", table::SLICED),
    ]
}

/// Runs all mutations of the backends among `candidates`, in one variant each, or those that are made for an operator.
/// True if every file has a mutation and all were noticed.
pub fn run(candidates: &[&Variant], op: Option<&str>, share: Share) -> Result<bool> {
    let of_backend = |name: &str| tables().iter().filter(|(variant, _)| variant.starts_with(name)).collect::<Vec<_>>();
    let backends: [(_, Files); 2] =
        [(of_backend("webgpu"), files(Language::Wgsl)), (of_backend("webgl"), files(Language::Glsl))];
    let mut expected = HashMap::new();
    let (mut noticed, mut failed, mut skipped) = (0, 0, 0);
    for (tables, files) in &backends {
        let mutated = |file: &str| tables.iter().any(|(_, mutations)| mutations.iter().any(|m| m.file == file));
        for (file, _) in files.iter().filter(|(file, _)| !mutated(file)) {
            println!("{file}: has no mutation; add one to the table");
            failed += 1;
        }
    }
    let variants = backends.iter().flat_map(|(tables, files)| tables.iter().map(move |table| (table, files)));
    for ((name, mutations), files) in variants {
        let Some(candidate) = candidates.iter().find(|c| c.name == *name) else { continue };
        let clean = match open(candidate, None) {
            Ok(backend) => backend,
            Err(error @ Error::Absent { .. }) => {
                println!("{name}: SKIPPED ({error})");
                skipped += mutations.len();
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("cannot open {name}")),
        };
        let without = clean.info().facts.contains(&("subgroups", "off".into()));
        if without && *mutations == table::SUBGROUPS {
            println!("{name}: SKIPPED (the device has no subgroups)");
            skipped += mutations.len();
            continue;
        }
        let asked = mutations.iter().filter(|mutation| op.is_none_or(|op| mutation.op == op));
        for mutation in share.pick(asked) {
            let result = is_only_in_its_file(mutation, files)
                .and_then(|()| notice(candidate, &*clean, mutation, expectations(&mut expected, mutation.op)?));
            match result {
                Ok(()) => noticed += 1,
                Err(why) => {
                    println!("{name} {} `{}` -> `{}`: {why:#}", mutation.file, mutation.find, mutation.replace);
                    failed += 1;
                }
            }
        }
    }
    println!("{noticed} passed, {failed} failed, {skipped} skipped");
    Ok(failed == 0 && noticed + skipped > 0)
}

/// The shaders of a language: files, and the functions that are printed.
fn files(language: Language) -> Files {
    let own = |(name, text): (&'static str, &str)| (name, text.to_owned());
    let files = match language {
        Language::Wgsl => backend_webgpu::shader_files().map(own).collect::<Vec<_>>(),
        Language::Glsl => backend_webgl::shader_files().map(own).collect(),
    };
    let units = UnaryKind::ALL.iter().map(|kind| kind.function());
    let named =
        units.chain(GluKind::ALL.iter().map(|kind| kind.function())).filter_map(|name| function(name, language));
    // As the first step of a chain has them.
    let element = |op: Op| {
        let operands = ["x", "y"].map(Expr::name);
        let expression = op.element(&operands, &mut |name, _| language.parameter(&format!("{name}0")))?;
        let (lines, result) = language.lines(&expression);
        Some(format!("{lines}return {result};\n"))
    };
    let printed = named.chain(functions().filter_map(element)).collect();
    files.into_iter().chain([(FUNCTIONS, printed)]).collect()
}

/// Otherwise the mutation would break more than it says, or nothing.
fn is_only_in_its_file(mutation: &Mutation, files: &Files) -> Result<()> {
    let having: Vec<_> = files.iter().filter(|(_, text)| text.contains(mutation.find)).map(|(file, _)| *file).collect();
    if having != [mutation.file] {
        bail!("the text is in {having:?}; choose one that is in its file only");
    }
    Ok(())
}

fn expectations<'a>(known: &'a mut HashMap<&'static str, Expected>, op: &'static str) -> Result<&'a Expected> {
    if !known.contains_key(op) {
        let reference = Cpu::new(Options { fast: false, ..Default::default() });
        let mut cases = suite::cases(Some(op));
        cases.sort_by_key(|case| case.graph.externals().map(|(_, tensor)| tensor.shape.len()).sum::<usize>());
        let mut expected = Vec::new();
        for case in cases {
            let values = run(&reference, &case).with_context(|| format!("the reference fails {op} [{}]", case.name))?;
            expected.push((case, values));
        }
        known.insert(op, expected);
    }
    return known.get(op).with_context(|| format!("{op} has no cases"));

    fn run(backend: &dyn Backend, case: &Case) -> Result<Vec<Values>, Error> {
        Ok(pollster::block_on(run_case(backend, case, &NativeHost::default()))?.0)
    }
}

/// Succeeds if a case goes wrong with the mutation that goes right without it.
fn notice(candidate: &Variant, clean: &dyn Backend, mutation: &Mutation, expected: &Expected) -> Result<()> {
    let patch = ShaderPatch { find: mutation.find, replace: mutation.replace };
    let broken = open(candidate, Some(patch)).context("cannot open the backend with it")?;
    for (case, values) in expected {
        if is_right(&*broken, case, values).context("it breaks more than results")? {
            continue;
        }
        if !is_right(clean, case, values)? {
            bail!("{} [{}] goes wrong without it, too; repair that first", case.op, case.name);
        }
        return Ok(());
    }
    bail!("no case of {} notices it", mutation.op)
}

/// Whether a case's results are right. *Errors*: it did not run, as with a shader that is no longer valid.
fn is_right(backend: &dyn Backend, case: &Case, expected: &[Values]) -> Result<bool, Error> {
    match pollster::block_on(run_case(backend, case, &NativeHost::default())) {
        Ok((found, expanded)) => {
            Ok(matches!(judge(&found, expected, case.tolerance_on(backend.info()), expanded), Outcome::Passed { .. }))
        }
        Err(Error::Driver(why)) if why.starts_with(OVERRUN) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_is_in_its_file_only_and_every_file_has_one() {
        let [webgpu, webgl] = [Language::Wgsl, Language::Glsl].map(files);
        for (variant, mutations) in tables() {
            let files = if variant.starts_with("webgpu") { &webgpu } else { &webgl };
            for mutation in *mutations {
                is_only_in_its_file(mutation, files)
                    .unwrap_or_else(|why| panic!("{} {}: {why}", mutation.file, mutation.find));
            }
        }
        for (file, _) in webgpu.iter().chain(&webgl) {
            let mutated = tables().iter().any(|(_, mutations)| mutations.iter().any(|m| m.file == *file));
            assert!(mutated, "{file} has no mutation");
        }
    }
}
