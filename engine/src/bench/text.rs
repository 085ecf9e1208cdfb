//! Reports as text, for terminals and the logs of browsers.

use std::fmt::{self, Display, Formatter};

use model::LoadTimes;

use super::model::rate;
use super::{
    AblationReport, Buffers, KernelTime, LoadReport, ModelReport, OpsReport, PerToken, Phases, RepackRate, Spread,
};

const MIB: f64 = (1 << 20) as f64;

impl Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Spread { median, min, max, n } = self;
        write!(f, "{median:.3} ms (min {min:.3}, max {max:.3}, n {n})")
    }
}

impl Display for ModelReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (first, stats, floors, floor) = (&self.first_token, &self.stats, &self.floors, &self.decode_floor);
        writeln!(f, "{} on {} ({})", self.model, self.backend, self.adapter)?;
        writeln!(
            f,
            "first token  {:.0} ms: open {:.0}, load {:.0}, compile {:.0}, prefill {:.0}",
            first.total_ms, first.open_ms, first.load_ms, first.compile_ms, first.prefill_ms
        )?;
        let (tokens, rate) = (self.prefill_tokens, self.prefill_tokens_per_s);
        let depth = if self.depth > 0 { format!(" after {}", self.depth) } else { String::new() };
        writeln!(f, "prefill      {tokens} tokens{depth} in {}, {rate:.1} tokens/s", self.prefill_ms)?;
        let (tokens, rate) = (self.decode_tokens, self.decode_tokens_per_s);
        writeln!(f, "decode       {tokens} tokens, each {}, {rate:.1} tokens/s", self.decode_ms_per_token)?;
        writeln!(f, "drawn        {tokens} tokens, each {}", self.drawn_ms_per_token)?;
        let Phases { encode_ms, queue_ms, fetch_ms, utilisation } = self.phases;
        let busy = 100.0 * utilisation;
        writeln!(
            f,
            "a step alone encode {encode_ms:.3}, queue {queue_ms:.3}, fetch {fetch_ms:.3} ms; decoding keeps the device \
             {busy:.0} % busy"
        )?;
        let per = |value: Option<f64>| value.map_or("?".into(), |value| format!("{value:.1}"));
        writeln!(
            f,
            "a token      {} dispatches, {} submits, {} objects made, {} bytes up, {} bytes down; {}",
            per(stats.dispatches_per_token),
            per(stats.submits_per_token),
            per(stats.gpu_objects_per_token),
            per(stats.upload_bytes_per_token),
            per(stats.readback_bytes_per_token),
            self.fetch_interval.map_or("read as fits the device".into(), |n| format!("a read every {n}"))
        )?;
        let held = self.buffers.iter().map(|Buffers { class, count, bytes }| {
            let mib = *bytes as f64 / MIB;
            format!("{count} {class} {mib:.1}")
        });
        let (all, held) = (self.device_memory_bytes as f64 / MIB, held.collect::<Vec<_>>().join(", "));
        writeln!(f, "memory       {all:.1} MiB on the device: {held}")?;
        for (phase, roles) in [("prefill", &self.roles.prefill), ("decode", &self.roles.decode)] {
            let shares = roles.iter().filter_map(|time| Some(format!("{} {:.1} %", time.role, time.percent?)));
            let shares = shares.collect::<Vec<_>>();
            if !shares.is_empty() {
                writeln!(f, "{phase:<12} {}", shares.join(", "))?;
            }
        }
        let formats = floors.read.iter().map(|r| format!("{} {:.2}", r.format, r.gb_per_s)).collect::<Vec<_>>();
        writeln!(
            f,
            "floors       read {:.2} GB/s ({}), dispatch {:.2} us, step {:.2} us, readback {}",
            floors.read_gb_per_s,
            formats.join(", "),
            floors.dispatch_us,
            floors.step_us,
            floors.readback_ms
        )?;
        writeln!(
            f,
            "the floor    {:.3} ms a token: {:.1} MB of weights and {:.1} MB of cache {:.3}, dispatches {:.3}; \
             {:.0} % of it reached",
            floor.floor_ms,
            floor.weight_bytes as f64 / 1e6,
            floor.cache_bytes as f64 / 1e6,
            floor.read_ms,
            floor.dispatch_ms,
            100.0 * floor.fraction
        )?;
        let Some(kernels) = &self.profile else { return writeln!(f, "kernels      this device has no clock for them") };
        let sum: f64 = kernels.iter().map(|kernel| kernel.ms).sum();
        let part = 100.0 * sum / self.decode_ms_per_token.median;
        writeln!(f, "kernels      each apart, {sum:.3} ms a step, {part:.0} % of a token's time")?;
        for KernelTime { kernel, count, ms, bytes, flops } in kernels {
            let bytes = *bytes as f64;
            let floor = floors.read_ms(bytes) + floors.dispatch_ms(*count as f64);
            let (mb, rate, reached) = (bytes / 1e6, bytes / ms / 1e6, 100.0 * floor / ms);
            let computed = flops.map_or(String::new(), |flops| format!(", {:.1} GFLOP/s", flops as f64 / ms / 1e6));
            writeln!(
                f,
                "{ms:>12.4} ms {count:>4} x {kernel}: {mb:.1} MB, {rate:.1} GB/s{computed}, {reached:.0} % of its floor"
            )?;
        }
        Ok(())
    }
}

impl Display for LoadReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let LoadTimes { bytes, read_ms, write_ms, device_ms, total_ms } = self.loading;
        writeln!(f, "{} on {} ({})", self.model, self.backend, self.adapter)?;
        let chosen = if self.remembered { "remembered, " } else { "" };
        writeln!(f, "{:>9.0} ms  open: header, selection ({chosen}{} self-tests)", self.open_ms, self.proofs)?;
        let mut stage =
            |what: &str, ms: f64| writeln!(f, "{ms:>9.0} ms {:>6.0} MB/s  {what}", rate(bytes as f64, ms) / 1e6);
        stage("load: all of it", total_ms)?;
        stage("  read: waiting for bytes, and copying them", read_ms)?;
        stage("  write: repacking, and handing over", write_ms)?;
        stage("  device: turns of the event loop, waiting for the device", device_ms)?;
        writeln!(f, "{:>9.0} ms  compile: what was left of it after the weights", self.compile_ms)?;
        writeln!(f, "repacking alone, GB/s of one thread:")?;
        for line in self.repack.chunks(7) {
            let rates: Vec<String> =
                line.iter().map(|RepackRate { format, gb_per_s }| format!("{format} {gb_per_s:.2}")).collect();
            writeln!(f, "    {}", rates.join(", "))?;
        }
        Ok(())
    }
}

impl Display for OpsReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}), {} queued, one read", self.backend, self.adapter, self.queued)?;
        writeln!(
            f,
            "{:<26} {:>10} {:>10} {:>10} {:>4} {:>10}",
            "ms an operator", "median", "min", "max", "n", "first"
        )?;
        for time in &self.ops {
            let name = time.b.map_or(time.op.to_owned(), |b| format!("{}, b {b}", time.op));
            let (first, Spread { median, min, max, n }) = (time.first_ms, time.ms);
            writeln!(f, "{name:<26} {median:>10.3} {min:>10.3} {max:>10.3} {n:>4} {first:>10.1}")?;
        }
        Ok(())
    }
}

impl Display for AblationReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (prefill, decode) = (self.prefill_tokens, self.decode_tokens);
        writeln!(f, "{} on {} ({}), {prefill} + {decode} tokens", self.model, self.backend, self.adapter)?;
        let head = ["prefill/s", "ratio", "decode/s", "ratio", "dispatches", "submits", "objects"];
        let [a, b, c, d, e, g, h] = head;
        writeln!(f, "{:<44} {a:>10} {b:>6} {c:>10} {d:>6} {e:>10} {g:>7} {h:>7}", "without")?;
        for row in &self.ablate {
            let PerToken { dispatches_per_token, submits_per_token, gpu_objects_per_token, .. } = row.stats;
            let counts = [dispatches_per_token, submits_per_token, gpu_objects_per_token];
            let [dispatches, submits, objects] = counts.map(|n| n.map_or("?".into(), |n| format!("{n:.0}")));
            writeln!(
                f,
                "{:<44} {:>10.1} {:>6.2} {:>10.1} {:>6.2} {dispatches:>10} {submits:>7} {objects:>7}",
                row.without, row.prefill_tokens_per_s, row.prefill_ratio, row.decode_tokens_per_s, row.decode_ratio
            )?;
        }
        Ok(())
    }
}
