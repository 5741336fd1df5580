package node

import (
	_ "holdfast/internal/locks"
	_ "holdfast/internal/locks/below"
	_ "holdfast/internal/native"
)
