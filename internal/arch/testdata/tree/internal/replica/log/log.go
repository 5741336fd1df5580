package log

import _ "holdfast/internal/replica/link"
import _ "holdfast/internal/replica"
