//! Scheme 6 as servers and proxies write it by hand: a slab, and a doubly linked list of its nodes for each bucket.
//! A removal unlinks the node, so there are no dead entries. The slab never gives memory back.

/// No node.
const NONE: u32 = u32::MAX;

struct Node<T> {
    deadline: u64,
    /// `None` if the node is free.
    value: Option<T>,
    next: u32,
    prev: u32,
    generation: u32,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

pub struct Lists<T> {
    nodes: Vec<Node<T>>,
    /// The first free node, which links to the next.
    free: u32,
    buckets: Vec<List>,
    /// The next tick to expire.
    tick: u64,
}

impl<T> Lists<T> {
    /// `buckets` must be a power of two.
    pub fn new(buckets: usize) -> Self {
        let buckets = vec![List { first: NONE, last: NONE }; buckets];
        Self { nodes: Vec::new(), free: NONE, buckets, tick: 0 }
    }

    fn bucket_of(&self, deadline: u64) -> usize {
        deadline as usize & (self.buckets.len() - 1)
    }

    /// An overdue value is due in the current tick.
    pub fn insert(&mut self, deadline: u64, value: T) -> (u32, u32) {
        let deadline = deadline.max(self.tick);
        let bucket = self.bucket_of(deadline);
        let last = self.buckets[bucket].last;
        let mut node = Node { deadline, value: Some(value), next: NONE, prev: last, generation: 0 };
        let index = self.free;
        let index = if let Some(free) = self.nodes.get_mut(index as usize) {
            self.free = free.next;
            node.generation = free.generation;
            *free = node;
            index
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.buckets[bucket].last = index;
        match self.nodes.get_mut(last as usize) {
            Some(last) => last.next = index,
            None => self.buckets[bucket].first = index,
        }
        (index, self.nodes[index as usize].generation)
    }

    pub fn remove(&mut self, (index, generation): (u32, u32)) -> Option<T> {
        let node = self.nodes.get(index as usize)?;
        (node.generation == generation).then(|| self.take(index).1)?
    }

    /// Takes a value out of its list, and frees its node.
    fn take(&mut self, index: u32) -> (u64, Option<T>) {
        let node = &mut self.nodes[index as usize];
        let (deadline, next, prev, value) =
            (node.deadline, node.next, node.prev, node.value.take());
        node.generation = node.generation.wrapping_add(1);
        node.next = self.free;
        self.free = index;
        let bucket = self.bucket_of(deadline);
        match self.nodes.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.buckets[bucket].first = next,
        }
        match self.nodes.get_mut(next as usize) {
            Some(next) => next.prev = prev,
            None => self.buckets[bucket].last = prev,
        }
        (deadline, value)
    }

    /// Passes on the wheel, the deadline and the value of each timeout that is due.
    pub fn expire(&mut self, now: u64, mut expired: impl FnMut(&mut Self, u64, T)) {
        while self.tick <= now {
            let mut index = self.buckets[self.bucket_of(self.tick)].first;
            while let Some(node) = self.nodes.get(index as usize) {
                let (due, next) = (node.deadline <= self.tick, node.next);
                if due {
                    let (deadline, value) = self.take(index);
                    value.into_iter().for_each(|value| expired(self, deadline, value));
                }
                index = next;
            }
            self.tick += 1;
        }
    }
}
