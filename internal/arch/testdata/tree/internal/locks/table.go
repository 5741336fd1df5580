package locks

import (
	_ "holdfast/wire"
	_ "sort"
)
