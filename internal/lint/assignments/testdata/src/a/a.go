package a

func two() (int, int)           { return 1, 2 }
func three() (int, int, int)    { return 1, 2, 3 }
func use(...any)                {}
func pairs(a, b int) (c, d int) { c, d = a, b; return c, d }
func results() (a, b, c int)    { a, b, c = three(); return a, b, c }

type point struct{ x, y, z int }

func assigns(p *point) {
	p.x, p.y, p.z = 1, 2, 3 // want `three or more values are assigned at once`
	a, b, c := 4, p.x, p.y  // want `three or more values are assigned at once`
	a, b, c = b, c, a       // want `three or more values are assigned at once`
	var d, e, f = 1, 2, 3   // want `three or more values are assigned at once`
	x, y := two()
	use(a, b, c, d, e, f, x, y)
	for i, j, k := 0, 1, 2; i < j; i++ { // want `three or more values are assigned at once`
		use(k)
	}
}
