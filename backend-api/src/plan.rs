//! The plan: which temporary lives in which slot.
//!
//! Slots are whole: a buffer or a texture each. No node reads and writes one slot, because a WebGPU buffer may not be
//! bound for reading and writing in one dispatch, and a WebGL texture may not be sampled while it is drawn to.

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

/// A graph with a place for every tensor.
#[derive(Debug, Clone)]
pub struct Plan {
    graph: Graph,
    places: Vec<Place>,
    slots: Vec<u64>,
}

impl Plan {
    /// Plans a graph. `size` gives a temporary's size in the backend's units (bytes, texels).
    ///
    /// Linear scan: a result takes the smallest free slot that is large enough, else grows the largest free one,
    /// else a new one; a slot is free again after the last node that reads its tensor. Results are placed before
    /// operands are freed, which keeps them apart.
    pub fn new(graph: Graph, size: &dyn Fn(&Tensor) -> u64) -> Plan {
        let mut last_use = vec![0usize; graph.tensors().count()];
        for (at, node) in graph.nodes().iter().enumerate() {
            for id in node.inputs.iter().chain(&node.outputs) {
                last_use[id.index()] = at;
            }
        }
        let mut places = vec![Place::External(usize::MAX); last_use.len()];
        for (index, (id, _)) in graph.externals().enumerate() {
            places[id.index()] = Place::External(index);
        }
        let mut slots: Vec<u64> = Vec::new();
        let mut free: Vec<usize> = Vec::new();
        for (at, node) in graph.nodes().iter().enumerate() {
            for &id in &node.outputs {
                if graph.root(id) != id {
                    places[id.index()] = places[graph.root(id).index()];
                } else if graph.tensor(id).kind == Kind::Temporary {
                    let need = size(graph.tensor(id));
                    let slot = take(&mut free, &mut slots, need);
                    places[id.index()] = Place::Slot(slot);
                }
            }
            let mut done: Vec<TensorId> = node.inputs.iter().chain(&node.outputs).copied().collect();
            done.sort_unstable();
            done.dedup();
            for id in done {
                if let (Place::Slot(slot), true) = (places[id.index()], last_use[id.index()] == at) {
                    free.push(slot);
                }
            }
        }
        Plan { graph, places, slots }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where a tensor lives.
    pub fn place(&self, id: TensorId) -> Place {
        self.places[id.index()]
    }

    /// The sizes of the slots.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }
}

fn take(free: &mut Vec<usize>, slots: &mut Vec<u64>, need: u64) -> usize {
    let fits = free.iter().enumerate().filter(|(_, s)| slots[**s] >= need).min_by_key(|(_, s)| slots[**s]);
    let pick = fits.or_else(|| free.iter().enumerate().max_by_key(|(_, s)| slots[**s])).map(|(at, _)| at);
    let slot = match pick {
        Some(at) => free.swap_remove(at),
        None => {
            slots.push(0);
            slots.len() - 1
        }
    };
    slots[slot] = slots[slot].max(need);
    slot
}

impl fmt::Display for Plan {
    /// One line a node, with the places of its operands and results, then the slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[TensorId]| {
            let one = |id: &TensorId| {
                let tensor = self.graph.tensor(*id);
                match self.place(*id) {
                    Place::External(_) => format!("{} {}", tensor.name, tensor.shape),
                    Place::Slot(slot) => format!("#{slot} {}", tensor.shape),
                }
            };
            ids.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        for node in self.graph.nodes() {
            writeln!(f, "{} <- {}({})", list(&node.outputs), node.op.name(), list(&node.inputs))?;
        }
        for (index, size) in self.slots.iter().enumerate() {
            writeln!(f, "slot #{index}: {size}")?;
        }
        Ok(())
    }
}
