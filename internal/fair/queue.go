package fair

import "container/list"

// queue decides who is next. It has no lock and never blocks: a Line guards it and waits.
type queue struct {
	cfg     Config
	used    int64
	waiting int
	keys    map[keyID]*keyState // those that hold or wait for something
	classes []classState
}

type keyID struct {
	class int
	name  string
}

// classState has the keys of a class that are waiting for their turn, the next one first. A key whose share
// does not suffice for its next request is not among them: it waits for itself, not for others.
type classState struct {
	weight int
	left   int        // grants before a later class has its turn
	ready  *list.List // of *keyState
}

type keyState struct {
	keyID
	weight  int
	held    int64
	waiting list.List     // of *waiter
	turn    *list.Element // in classState.ready; nil if the key is not ready
	turns   int           // grants left in its turn
}

type waiter struct {
	class int
	name  string
	units int64
	first bool // ahead of the other requests of its key

	key     *keyState
	element *list.Element
	granted bool
	done    chan struct{} // closed when it is granted; nil if nobody waits
}

func newQueue(cfg Config) queue {
	cfg.Capacity = max(cfg.Capacity, 1)
	weights := cfg.Classes
	if len(weights) == 0 {
		weights = []int{1}
	}
	q := queue{cfg: cfg, keys: map[keyID]*keyState{}, classes: make([]classState, len(weights))}
	for i, weight := range weights {
		q.classes[i] = classState{weight: max(weight, 1), left: max(weight, 1), ready: list.New()}
	}
	return q
}

// share returns how many units a key may hold.
func (q *queue) share(weight int) int64 {
	share := q.cfg.Share
	if share <= 0 {
		share = max(q.cfg.Capacity/2, 1)
	}
	if int64(weight) > q.cfg.Capacity/share { // without the product, which may overflow
		return q.cfg.Capacity
	}
	return share * int64(weight)
}

// mayWait reports whether there is room for one more request that waits. Grants may always grow.
func (q *queue) mayWait(w *waiter) bool {
	if w.first {
		return true
	}
	if q.cfg.Waiting > 0 && q.waiting >= q.cfg.Waiting {
		return false
	}
	k := q.keys[keyID{w.class, w.name}]
	return k == nil || q.cfg.Queue <= 0 || k.waiting.Len() < q.cfg.Queue
}

// mayBeNext reports whether a request could be granted at once. One that could not must not be added only
// to be removed: its key would lose its place.
func (q *queue) mayBeNext(w *waiter) bool {
	k := q.keys[keyID{w.class, w.name}]
	if k == nil {
		return true
	}
	return (w.first || k.waiting.Len() == 0) && q.fits(k, w)
}

// grantAtOnce grants a request if its key's turn would come at once, because no key waits for one. It does what
// add and next would, without their lists, because most requests are such.
func (q *queue) grantAtOnce(w *waiter) bool {
	for i := range q.classes {
		if q.classes[i].ready.Len() > 0 {
			return false
		}
	}
	id := keyID{w.class, w.name}
	k := q.keys[id]
	if k != nil && !w.first && k.waiting.Len() > 0 {
		return false
	}
	weight := q.weightOf(id.name, k)
	units := min(w.units, q.share(weight))
	if units > q.cfg.Capacity-q.used || k != nil && units > q.share(weight)-k.held {
		return false
	}
	if k == nil {
		k = q.newKey(id, weight)
	}
	w.key = k
	w.units = units
	w.granted = true
	q.used += units
	k.held += units
	q.update(k) // requests may wait behind a growth
	return true
}

// add appends a request.
func (q *queue) add(w *waiter) {
	w.key = q.keyOf(keyID{w.class, w.name})
	w.units = min(w.units, q.share(w.key.weight))
	w.element = w.key.insert(w)
	q.waiting++
	q.update(w.key)
}

// insert adds a request behind all others, or, if it comes first, behind others that come first.
func (k *keyState) insert(w *waiter) *list.Element {
	if !w.first {
		return k.waiting.PushBack(w)
	}
	for e := k.waiting.Front(); e != nil; e = e.Next() {
		if !e.Value.(*waiter).first { //nolint:forcetypeassert // lists have one type
			return k.waiting.InsertBefore(w, e)
		}
	}
	return k.waiting.PushBack(w)
}

func (q *queue) keyOf(id keyID) *keyState {
	k := q.keys[id]
	if k == nil {
		k = q.newKey(id, q.weightOf(id.name, nil))
	}
	return k
}

// weightOf returns the weight of a key, whose state is nil if it holds and waits for nothing.
func (q *queue) weightOf(name string, k *keyState) int {
	switch {
	case k != nil:
		return k.weight
	case q.cfg.Weight != nil:
		return max(q.cfg.Weight(name), 1)
	}
	return 1
}

func (q *queue) newKey(id keyID, weight int) *keyState {
	k := &keyState{keyID: id, weight: weight}
	q.keys[id] = k
	return k
}

// remove removes a request that is not granted.
func (q *queue) remove(w *waiter) {
	w.key.waiting.Remove(w.element)
	q.waiting--
	q.update(w.key)
}

// cancel removes a request that gave up. If all others waited for it, it has used a turn. Otherwise a key whose
// large requests follow one another could stay in front of all others without being granted anything.
func (q *queue) cancel(w *waiter) {
	class := &q.classes[w.class]
	usedTurn := w.key.turn != nil && w.key.turn == class.ready.Front() && w.element == w.key.waiting.Front()
	q.remove(w)
	if usedTurn && w.key.turn != nil {
		q.endTurn(class, w.key)
	}
}

// release returns units of a key.
func (q *queue) release(k *keyState, units int64) {
	q.used -= units
	k.held -= units
	q.update(k)
}

// update adds a key to those that wait for their turn, or removes it, and forgets idle keys. A key keeps the
// rest of its turn only while requests of it wait for its own share: whoever could come back to the front after
// a cancellation could stay there.
func (q *queue) update(k *keyState) {
	class := &q.classes[k.class]
	if k.waiting.Len() == 0 {
		k.turns = 0
	}
	switch ready := q.isReady(k); {
	case ready && k.turn == nil && k.turns > 0 && k.turns < k.weight: // its turn has begun
		k.turn = class.ready.PushFront(k)
	case ready && k.turn == nil:
		k.turns = k.weight
		k.turn = class.ready.PushBack(k)
	case !ready && k.turn != nil:
		class.ready.Remove(k.turn)
		k.turn = nil
	}
	if k.held == 0 && k.waiting.Len() == 0 {
		delete(q.keys, k.keyID)
	}
}

func (q *queue) isReady(k *keyState) bool {
	head := k.waiting.Front()
	return head != nil && q.fits(k, head.Value.(*waiter)) //nolint:forcetypeassert // lists have one type
}

// fits reports whether the share of a key suffices for a request.
func (q *queue) fits(k *keyState, w *waiter) bool { return w.units <= q.share(k.weight)-k.held }

// next grants the next request that what is free suffices for. It returns nil if none does. A request
// that is larger than what is free blocks the ones behind it, because otherwise small requests would
// starve it.
func (q *queue) next() *waiter {
	class := q.nextClass()
	if class == nil {
		return nil
	}
	k := class.ready.Front().Value.(*keyState) //nolint:forcetypeassert // lists have one type
	w := k.waiting.Front().Value.(*waiter)     //nolint:forcetypeassert // lists have one type
	if w.units > q.cfg.Capacity-q.used {
		return nil
	}
	class.left--
	q.used += w.units
	k.held += w.units
	k.waiting.Remove(w.element)
	q.waiting--
	w.granted = true
	q.endTurn(class, k)
	return w
}

// endTurn lets the next key have its turn, unless this one has turns left.
func (q *queue) endTurn(class *classState, k *keyState) {
	k.turns--
	if k.turns <= 0 {
		class.ready.Remove(k.turn)
		k.turn = nil
	}
	q.update(k)
}

// nextClass returns the class whose turn it is: the first one with requests and grants left. If none has
// any left, all have their grants again.
func (q *queue) nextClass() *classState {
	var first *classState
	for i := range q.classes {
		class := &q.classes[i]
		if class.ready.Len() == 0 {
			continue
		}
		if class.left > 0 {
			return class
		}
		if first == nil {
			first = class
		}
	}
	for i := range q.classes {
		q.classes[i].left = q.classes[i].weight
	}
	return first
}
