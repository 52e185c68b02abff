import { testFamilies } from './trend-families.ts';

// One minute, and three.
testFamilies([60, 180]);
