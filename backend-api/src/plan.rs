//! The plan: which temporary lives in which slot.
//!
//! Slots are whole: a buffer or a texture each. No cover reads and writes one slot, because a WebGPU buffer may not be
//! bound for reading and writing in one dispatch, and a WebGL texture may not be sampled while it is drawn to.

use crate::error::{Error, Unsupported};
use crate::form::Cover;
use crate::graph::{Graph, TensorId};
use crate::tensor::{Kind, Tensor};
use std::fmt;

/// Where a tensor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the n-th of the graph's externals.
    External(usize),
    /// In a slot of the plan.
    Slot(usize),
}

/// A graph with what covers it and a place for every tensor that lies between covers.
#[derive(Debug, Clone)]
pub struct Plan {
    graph: Graph,
    covers: Vec<Cover>,
    places: Vec<Option<Place>>,
    slots: Vec<u64>,
}

impl Plan {
    /// Gives every tensor of a covered graph that lies between covers a slot. `size` is a temporary's in the backend's units
    /// (bytes, texels); `equal` asks for slots of equal size for the results of one cover.
    ///
    /// Linear scan: a result takes the smallest free slot that is large enough, else grows the largest free one,
    /// else a new one; a slot is free again after the last cover that reads its tensor. Results are placed before
    /// operands are freed, which keeps them apart.
    pub fn new(graph: Graph, covers: Vec<Cover>, size: &dyn Fn(&Tensor) -> u64, equal: bool) -> Plan {
        let mut last_use = vec![0usize; graph.tensors().len()];
        for (at, cover) in covers.iter().enumerate() {
            for id in cover.inputs.iter().chain(&cover.outputs) {
                last_use[id.index()] = at;
            }
        }
        let mut places = vec![None; last_use.len()];
        for (index, (id, _)) in graph.externals().enumerate() {
            places[id.index()] = Some(Place::External(index));
        }
        let mut slots = Slots::default();
        for (at, cover) in covers.iter().enumerate() {
            let mut made = Vec::new();
            for &id in &cover.outputs {
                if graph.root(id) != id {
                    places[id.index()] = places[graph.root(id).index()];
                } else if graph.tensor(id).kind == Kind::Temporary {
                    let slot = slots.take(size(graph.tensor(id)));
                    places[id.index()] = Some(Place::Slot(slot));
                    made.push(slot);
                }
            }
            if equal {
                slots.equal(&made);
            }
            let mut done: Vec<TensorId> = cover.inputs.iter().chain(&cover.outputs).copied().collect();
            done.sort_unstable();
            done.dedup();
            for id in done {
                if let (Some(Place::Slot(slot)), true) = (places[id.index()], last_use[id.index()] == at) {
                    slots.free.push(slot);
                }
            }
        }
        Plan { graph, covers, places, slots: slots.sizes() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the covers in the order of execution.
    pub fn covers(&self) -> &[Cover] {
        &self.covers
    }

    /// The kernels of each cover, as a backend lowers it.
    ///
    /// *Errors*: all covers that it refuses.
    pub fn lower<K>(&self, lower: impl Fn(&Cover) -> Result<K, Unsupported>) -> Result<Vec<K>, Error> {
        let (mut kernels, mut refused) = (Vec::with_capacity(self.covers.len()), Vec::new());
        for cover in &self.covers {
            match lower(cover) {
                Ok(kernel) => kernels.push(kernel),
                Err(why) => refused.push(why),
            }
        }
        if refused.is_empty() { Ok(kernels) } else { Err(Error::Unsupported(refused)) }
    }

    /// Where a tensor lives; nowhere, if a cover keeps it to itself.
    pub fn place(&self, id: TensorId) -> Option<Place> {
        self.places[id.index()]
    }

    /// The sizes of the slots.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }
}

/// The slots so far.
#[derive(Default)]
struct Slots {
    sizes: Vec<u64>,
    /// For each slot the one that it is to be as large as, or itself.
    like: Vec<usize>,
    free: Vec<usize>,
}

impl Slots {
    fn take(&mut self, need: u64) -> usize {
        let size = |at: &usize| self.sizes[self.free[*at]];
        let all = 0..self.free.len();
        let fits = all.clone().filter(|at| size(at) >= need).min_by_key(size);
        let slot = match fits.or_else(|| all.max_by_key(size)) {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.sizes.push(0);
                self.like.push(self.like.len());
                self.like.len() - 1
            }
        };
        self.sizes[slot] = self.sizes[slot].max(need);
        slot
    }

    fn leader(&self, mut slot: usize) -> usize {
        while self.like[slot] != slot {
            slot = self.like[slot];
        }
        slot
    }

    /// Makes slots as large as the largest of them.
    fn equal(&mut self, slots: &[usize]) {
        for pair in slots.windows(2) {
            let (a, b) = (self.leader(pair[0]), self.leader(pair[1]));
            self.like[b] = a;
        }
    }

    fn sizes(self) -> Vec<u64> {
        let leaders: Vec<usize> = (0..self.sizes.len()).map(|slot| self.leader(slot)).collect();
        let mut largest = vec![0; self.sizes.len()];
        for (leader, size) in leaders.iter().zip(&self.sizes) {
            largest[*leader] = largest[*leader].max(*size);
        }
        leaders.into_iter().map(|leader| largest[leader]).collect()
    }
}

impl fmt::Display for Plan {
    /// One line a cover, with the places of its operands and results, then the slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[TensorId]| {
            let one = |id: &TensorId| {
                let tensor = self.graph.tensor(*id);
                match self.place(*id) {
                    Some(Place::Slot(slot)) => format!("#{slot} {}", tensor.shape),
                    _ => format!("{} {}", tensor.name, tensor.shape),
                }
            };
            ids.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        for cover in &self.covers {
            writeln!(f, "{} <- {}({})", list(&cover.outputs), cover.form.name(), list(&cover.inputs))?;
        }
        for (index, size) in self.slots.iter().enumerate() {
            writeln!(f, "slot #{index}: {size}")?;
        }
        Ok(())
    }
}
