//! The list of kernels and variants that the backends can make, and how many cases and mutations each has. What has no case
//! is not proven by a run of the suite, whatever its result.

use crate::backends::{webgl_options, webgpu_options};
use crate::mutate::tables;
use anygpu_conformance::variants::{self, Kind, Variant};
use anyhow::{Result, bail};
use backend_api::cases;
use backend_api::shader::{Emitted, File, Known, expand};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A backend's kernels and what exercises them.
struct Source {
    backend: &'static str,
    kernels: Vec<Known>,
    emitted: Vec<Emitted>,
    files: Vec<File>,
    /// Mutations of shaders: the file and the text that each replaces. None where kernels are no shaders.
    mutations: Option<Vec<(&'static str, &'static str)>>,
}

/// A kernel, or one of its variants.
#[derive(Debug, Serialize)]
pub struct Point {
    /// The backend.
    pub backend: &'static str,
    /// The kernel: a shader file, or what the CPU's function runs.
    pub kernel: &'static str,
    /// Nothing for the kernel as such; a flag, `!` before one that is not set; or a decoder with its format.
    pub variant: String,
    /// Cases that run it.
    pub cases: usize,
    /// Mutations of what this variant has and others do not; of the file, for a kernel. None where there can be none.
    pub mutations: Option<usize>,
    /// The requirement that this machine does not meet.
    pub missing: Option<&'static str>,
}

/// All kernels and variants of the backends that some variants of the suite are of.
pub fn points(candidates: &[&Variant]) -> Result<Vec<Point>> {
    let asked = |of: fn(&Kind) -> bool| candidates.iter().any(|variant| of(&variant.kind));
    let mut sources = Vec::new();
    if asked(|kind| matches!(kind, Kind::Reference)) {
        sources.push(cpu("reference", false)?);
    }
    if asked(|kind| matches!(kind, Kind::Cpu(_))) {
        sources.push(cpu("cpu", true)?);
    }
    if asked(|kind| matches!(kind, Kind::WebGpu(_))) {
        sources.push(webgpu()?);
    }
    if asked(|kind| matches!(kind, Kind::WebGl(_))) {
        sources.push(webgl()?);
    }
    let mut points = Vec::new();
    for source in &sources {
        points.extend(source.points()?);
    }
    Ok(points)
}

fn cpu(backend: &'static str, fast: bool) -> Result<Source> {
    let (kernels, emitted) = reference_cpu::testing::kernels(fast).map_err(anyhow::Error::msg)?;
    Ok(Source { backend, kernels, emitted, files: Vec::new(), mutations: None })
}

fn webgpu() -> Result<Source> {
    let mut emitted = Vec::new();
    for variant in variants::ALL {
        if let Kind::WebGpu(options) = variant.kind {
            emitted.extend(backend_webgpu::testing::emitted(&webgpu_options(options)).map_err(anyhow::Error::msg)?);
        }
    }
    let kernels = backend_webgpu::testing::kernels().map_err(anyhow::Error::msg)?;
    Ok(gpu("webgpu", kernels, emitted, backend_webgpu::shader_files().collect()))
}

fn webgl() -> Result<Source> {
    let mut emitted = Vec::new();
    for variant in variants::ALL {
        if let Kind::WebGl(kind) = variant.kind {
            let made = backend_webgl::testing::emitted(&webgl_options(kind)?, kind.max_targets);
            emitted.extend(made.map_err(anyhow::Error::msg)?);
        }
    }
    let kernels = backend_webgl::testing::kernels().map_err(anyhow::Error::msg)?;
    Ok(gpu("webgl", kernels, emitted, backend_webgl::shader_files().collect()))
}

fn gpu(backend: &'static str, kernels: Vec<Known>, emitted: Vec<Emitted>, files: Vec<File>) -> Source {
    let tables = tables().iter().filter(|(variant, _)| variant.starts_with(backend));
    let mutations = tables.flat_map(|(_, list)| list.iter().map(|mutation| (mutation.file, mutation.find))).collect();
    Source { backend, kernels, emitted, files, mutations: Some(mutations) }
}

impl Source {
    fn points(&self) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for known in &self.kernels {
            let emitted: Vec<&Emitted> = self.emitted.iter().filter(|e| e.kernel == known.kernel).collect();
            let count = |of: &dyn Fn(&Emitted) -> bool| {
                emitted.iter().filter(|e| of(e)).map(|e| e.case).collect::<BTreeSet<_>>().len()
            };
            let mut add = |variant: String, cases, mutations: Option<usize>, needed: bool| {
                let never = known.never.contains(&variant);
                if never && cases == 0 {
                    return;
                }
                let missing = match (cases, mutations) {
                    _ if never => Some("the backend says that it never makes it"),
                    (0, _) => Some("no case runs it"),
                    (_, Some(0)) if needed => Some("it has no mutation"),
                    _ => None,
                };
                let (backend, kernel) = (self.backend, known.kernel);
                points.push(Point { backend, kernel, variant, cases, mutations, missing });
            };
            let own = |(file, _): &&(&str, &str)| file.rsplit_once('.').is_some_and(|(stem, _)| stem == known.kernel);
            let mutations = self.mutations.as_ref().map(|list| list.iter().filter(own).count());
            add(String::new(), count(&|_| true), mutations, true);
            let broken = self.broken_by_flag(known, &emitted)?;
            for flag in &known.flags {
                for on in [true, false] {
                    let name = if on { (*flag).to_owned() } else { format!("!{flag}") };
                    let mutations = broken.get(&(*flag, on)).map(BTreeSet::len);
                    add(name, count(&|e| e.flags.contains(flag) == on), mutations, true);
                }
            }
            let observed = emitted.iter().flat_map(|e| &e.decoders);
            let knows = |variant: &String| {
                known.flags.contains(variant.trim_start_matches('!')) || known.decoders.contains_key(variant)
            };
            if let Some(odd) = known.never.iter().find(|variant| !knows(variant)) {
                bail!("{} {} is said never to be {odd}, which its files do not know", self.backend, known.kernel);
            }
            let decoders: BTreeSet<&String> = known.decoders.keys().chain(observed).collect();
            for decoder in decoders {
                let mutations = self.mutations_of_decoder(known, decoder)?;
                add(decoder.clone(), count(&|e| e.decoders.contains(decoder)), mutations, true);
            }
        }
        Ok(points)
    }

    /// The mutations whose text a kernel has with a flag set or not set, and not with that flag the other way. Nothing where
    /// the kernel has no line that it lacks the other way.
    fn broken_by_flag<'k>(
        &self,
        known: &'k Known,
        emitted: &[&Emitted],
    ) -> Result<BTreeMap<(&'k str, bool), BTreeSet<&'static str>>> {
        let Some(main) = known.files.iter().find(|file| file.rsplit_once('.').is_some_and(|(s, _)| s == known.kernel))
        else {
            return Ok(BTreeMap::new());
        };
        let texts: Vec<&str> =
            self.mutations.iter().flatten().filter(|(f, _)| known.files.contains(f)).map(|m| m.1).collect();
        let text = |flags: &BTreeSet<&str>| {
            let flags: Vec<&str> = flags.iter().copied().collect();
            expand(&self.files, main, &flags).map(|(text, _)| text).map_err(anyhow::Error::msg)
        };
        let mut broken: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for flags in emitted.iter().map(|e| &e.flags).collect::<BTreeSet<_>>() {
            let with = text(flags)?;
            for flag in &known.flags {
                let mut other = flags.clone();
                let on = !other.insert(flag);
                if on {
                    other.remove(flag);
                }
                let without = text(&other)?;
                let lines: BTreeSet<&str> = without.lines().collect();
                if with.lines().all(|line| lines.contains(line)) {
                    continue;
                }
                let only = texts.iter().filter(|find| with.contains(**find) && !without.contains(**find));
                broken.entry((*flag, on)).or_default().extend(only.copied());
            }
        }
        Ok(broken)
    }

    /// How many mutations a decoder's text has.
    fn mutations_of_decoder(&self, known: &Known, decoder: &str) -> Result<Option<usize>> {
        let (Some(mutations), Some(instance)) = (&self.mutations, known.decoders.get(decoder)) else { return Ok(None) };
        let mut count = 0;
        for file in &instance.files {
            let (text, _) = expand(&self.files, file, &instance.flags).map_err(anyhow::Error::msg)?;
            count += mutations.iter().filter(|(of, find)| of == file && text.contains(find)).count();
        }
        Ok(Some(count))
    }
}

/// The list as a table, what is missing, and the counts.
pub fn table(points: &[Point]) -> String {
    let mut out = format!("{:8} {:18} {:20} {:>5} {:>9}\n", "backend", "kernel", "variant", "cases", "mutations");
    for Point { backend, kernel, variant, cases, mutations, .. } in points {
        let mutations = mutations.map_or("-".into(), |count| count.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{backend:8} {kernel:18} {variant:20} {cases:>5} {mutations:>9}");
    }
    for Point { backend, kernel, variant, missing, .. } in points {
        if let Some(why) = missing {
            let _ = writeln!(out, "MISSING {backend} {kernel} {variant}: {why}");
        }
    }
    let kernels = points.iter().filter(|point| point.variant.is_empty()).count();
    let missing = points.iter().filter(|point| point.missing.is_some()).count();
    let _ = writeln!(
        out,
        "{kernels} kernels, {} variants, {} cases, {} mutations, {missing} missing",
        points.len() - kernels,
        cases::all().len(),
        tables().iter().map(|(_, list)| list.len()).sum::<usize>()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_and_variant_has_cases_and_mutations() {
        let all: Vec<&Variant> = variants::ALL.iter().collect();
        let points = points(&all).unwrap();
        let missing: Vec<&Point> = points.iter().filter(|point| point.missing.is_some()).collect();
        assert!(points.len() > 500 && missing.is_empty(), "{missing:#?}");
    }

    /// A kernel with a flag and two decoders, of which the only case sets the flag and takes one.
    fn made_up(mutations: Vec<(&'static str, &'static str)>) -> Source {
        let files: Vec<File> = vec![
            ("made_up.wgsl", "//!if FAST\nquick\n//!else\nslow\n//!end\n//!decoder w\nfn main("),
            ("idle.wgsl", "fn main("),
            ("format/a.wgsl", "a\n"),
            ("format/b.wgsl", "b\n"),
        ];
        let mut kernels = backend_api::shader::kernels(&files, "fn main(").unwrap();
        let instance = |file| backend_api::shader::Instance { files: vec![file], ..Default::default() };
        kernels[0].decoders = [("a", "format/a.wgsl"), ("b", "format/b.wgsl")]
            .map(|(name, file)| (name.to_owned(), instance(file)))
            .into();
        let emitted = Emitted { kernel: "made_up", flags: ["FAST"].into(), decoders: ["a".to_owned()].into(), case: 0 };
        Source { backend: "webgpu", kernels, emitted: vec![emitted], files, mutations: Some(mutations) }
    }

    #[test]
    fn what_nothing_exercises_is_missing() {
        let missing = |mutations| {
            let points = made_up(mutations).points().unwrap();
            let odd = points.iter().filter_map(|p| Some(format!("{} {}: {}", p.kernel, p.variant, p.missing?)));
            odd.collect::<Vec<_>>()
        };
        let no_case = ["made_up !FAST: no case runs it", "made_up b: no case runs it", "idle : no case runs it"];
        assert_eq!(missing(vec![("made_up.wgsl", "quick"), ("format/a.wgsl", "a")]), no_case);
        let without = missing(vec![]);
        assert!(without.contains(&"made_up : it has no mutation".into()), "{without:?}");
        assert!(without.contains(&"made_up a: it has no mutation".into()), "{without:?}");
    }

    #[test]
    fn what_is_never_made_is_neither_made_nor_unknown() {
        let with_never = |variant: &str| {
            let mut source = made_up(vec![("made_up.wgsl", "quick"), ("format/a.wgsl", "a")]);
            source.kernels[0].never.insert(variant.to_owned());
            source.points().map(|points| {
                let of = points.into_iter().filter(|p| p.kernel == "made_up" && p.variant == variant);
                of.map(|p| p.missing).collect::<Vec<_>>()
            })
        };
        assert_eq!(with_never("!FAST").unwrap(), []);
        assert_eq!(with_never("FAST").unwrap(), [Some("the backend says that it never makes it")]);
        assert!(with_never("SLOW").unwrap_err().to_string().contains("do not know"));
    }

    #[test]
    fn a_mutation_counts_for_the_flag_whose_lines_it_breaks() {
        let points = made_up(vec![("made_up.wgsl", "quick"), ("made_up.wgsl", "fn main(")]).points().unwrap();
        let count =
            |variant: &str| points.iter().find(|p| p.kernel == "made_up" && p.variant == variant).unwrap().mutations;
        assert_eq!((count(""), count("FAST"), count("!FAST")), (Some(2), Some(1), None));
    }
}
